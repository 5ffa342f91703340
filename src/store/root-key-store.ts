import type { RootKeyVerdict } from "../domain/root-key.ts";

/** The id of the root key that was generated at the first start. */
export const generatedRootKeyId = "root_generated";

/** Whether root keys are stored. `generated`: only the generated one. `retired`: the same, and it is not valid any more. */
export type RootKeyPresence = "none" | "generated" | "retired" | "some";

/** Root keys as they are found when one is presented. Separate from issued keys, so that one can never be used as the other. */
export interface RootKeyStore {
  /** Undefined: there is none with this digest. */
  findByDigest(digest: string): Promise<RootKeyVerdict | undefined>;

  presence(nowMs: number): Promise<RootKeyPresence>;

  /** From now on the generated root key is not valid, on no replica, unless it has one of these digests. */
  retireGenerated(nowMs: number, exceptDigests: readonly string[]): Promise<void>;

  /** Tells all replicas and edges that what they know of root keys may be wrong. */
  announceChange(): Promise<void>;

  /**
   * Stores the generated root key, which may do everything, if there is no root key, or only a generated one that is
   * retired; returns whether it did. Of several concurrent callers one succeeds.
   */
  addFirst(digest: string, start: string, nowMs: number): Promise<boolean>;
}
