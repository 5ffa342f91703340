import type { RootKeyVerdict } from "../domain/root-key.ts";

/** The id of the root key that was generated at the first start. */
export const generatedRootKeyId = "root_generated";

/** Root keys as they are found when one is presented. Separate from issued keys, so that one can never be used as the other. */
export interface RootKeyStore {
  /** Undefined: there is none with this digest. */
  findByDigest(digest: string): Promise<RootKeyVerdict | undefined>;

  hasAny(): Promise<boolean>;

  /**
   * Stores the generated root key, which may do everything, if there is no root key yet; returns whether it did. Of several
   * concurrent callers one succeeds.
   */
  addFirst(digest: string, start: string, nowMs: number): Promise<boolean>;
}
