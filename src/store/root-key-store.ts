/** The id of the root key that was generated at the first start. */
export const generatedRootKeyId = "root_generated";

/** Digests of generated root keys. Separate from issued keys, so that one can never be used as the other. */
export interface RootKeyStore {
  digests(): Promise<readonly string[]>;

  /** Stores the digest if there is none yet; returns whether it did. Of several concurrent callers one succeeds. */
  addFirst(digest: string, nowMs: number): Promise<boolean>;
}
