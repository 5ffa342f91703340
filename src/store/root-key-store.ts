/** Digests of generated root keys: apart from issued keys, so that one can never act as the other. */
export interface RootKeyStore {
  digests(): Promise<readonly string[]>;

  /** Keeps the digest if no other is kept yet; answers whether it did. Of several callers at once, one succeeds. */
  addFirst(digest: string, nowMs: number): Promise<boolean>;
}
