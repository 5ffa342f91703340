/** A change of stored data, as caches receive it. Plain data: it goes to other processes, replicas and edges. */
export type Change =
  | ({ readonly kind: "key" } & KeyChange)
  /** The record of an owner was made, changed or removed. `isNew`: its keys may have been looked up before there was one. */
  | ({ readonly kind: "owner" } & OwnerChange)
  /** Root keys were added, changed or removed. */
  | { readonly kind: "rootKeys" }
  /** Keys were imported, the first ones perhaps: from now on texts that this service has not made may be keys. */
  | { readonly kind: "imports" };

/** `digests` are those of the key's secrets. Undefined: they are unknown, and a cache has to check its entries by key id. */
export interface KeyChange {
  readonly keyId: string;
  readonly digests: readonly string[] | undefined;
}

export interface OwnerChange {
  readonly ownerId: string;
  readonly isNew: boolean;
}

/** Who receives the changes that are made in this process: its own caches, and other replicas. */
export interface ChangeAudience {
  /**
   * Own caches: resolves when none of them serves what was changed as it was, and rejects with `Unavailable` if that is not
   * known. Other replicas: resolves when the message was sent, or cannot be sent now. Then they learn of the change from
   * the change feed alone, a little later.
   */
  broadcast(change: Change): Promise<void>;
}

/** A cache of stored data: of this process, or of several. */
export interface ChangeCache {
  /** Something was changed or removed. A cache that holds nothing of this kind does nothing. */
  invalidate(change: Change): void;
  /** Anything may have been changed or removed. */
  invalidateAll(): void;
  /** Every change that was committed before this moment has been reported, by monotonic time. */
  newsIsCurrent(atMs: number): void;
}

/** Reports changes to a cache of this process. */
export function audienceOf(cache: Pick<ChangeCache, "invalidate">): ChangeAudience {
  return { broadcast: async (change) => cache.invalidate(change) };
}

/** Several caches as one. */
export function allCaches(caches: readonly ChangeCache[]): ChangeCache {
  return {
    invalidate(change) {
      for (const cache of caches) cache.invalidate(change);
    },
    invalidateAll() {
      for (const cache of caches) cache.invalidateAll();
    },
    newsIsCurrent(atMs) {
      for (const cache of caches) cache.newsIsCurrent(atMs);
    },
  };
}
