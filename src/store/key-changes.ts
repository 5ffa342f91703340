/** Messages between replicas about changed and deleted keys. */
export interface KeyChanges {
  /**
   * Tells the other replicas. Resolves when the message was sent, or cannot be sent now: then the replicas learn of the
   * change when the link is back, or when their cached key expires. Never throws.
   */
  broadcast(change: KeyChange): Promise<void>;
}

/** `digests` are those of the key's secrets. Undefined: they are unknown, and a cache has to check its entries by key id. */
export interface KeyChange {
  readonly keyId: string;
  readonly digests: readonly string[] | undefined;
}
