/** Who is told of changes that are made in this process: its own caches, and other replicas. */
export interface KeyChanges {
  /**
   * Own caches: resolves when none of them serves the key as it was, and rejects with `Unavailable` if that is not known.
   * Other replicas: resolves when the message was sent, or cannot be sent now. Then they learn of the change from the
   * change feed alone, a little later.
   */
  broadcast(change: KeyChange): Promise<void>;
}

/** A cache of keys: of this thread, or of several. */
export interface KeyCache {
  /** The key was changed or deleted. */
  invalidate(change: KeyChange): void;
  /** Any key may have been changed or deleted. */
  invalidateAll(): void;
  /** Every change that was committed before this moment has been told, by monotonic time. */
  newsIsCurrent(atMs: number): void;
}

/** `digests` are those of the key's secrets. Undefined: they are unknown, and a cache has to check its entries by key id. */
export interface KeyChange {
  readonly keyId: string;
  readonly digests: readonly string[] | undefined;
}
