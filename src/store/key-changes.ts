/** Word of keys that were changed or deleted, between replicas. */
export interface KeyChanges {
  /**
   * Tells the other replicas. Resolves when they have been told or it is clear that they cannot be now: then they learn
   * when the link is back, or when their memory of the key ends. Never throws.
   */
  announce(change: KeyChange): Promise<void>;
}

/** The digests of the key's secrets; undefined when they are not known, and whoever remembers the key must look. */
export interface KeyChange {
  readonly keyId: string;
  readonly digests: readonly string[] | undefined;
}
