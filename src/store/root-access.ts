import type { MaybePromise } from "../domain/maybe-promise.ts";
import type { RootKeyVerdict } from "../domain/root-key.ts";
import { RootKeyRefused } from "../domain/root-key-refused.ts";
import type { Secret } from "../domain/secret.ts";
import type { Management } from "./management.ts";

const refuse = () => Promise.reject(new RootKeyRefused());
/** What someone without a root key can do: every call rejects. */
export const refusedManagement: Management = { change: refuse, read: refuse };

/** Who may manage stored data, and how. Root keys and their digests never leave the place that knows them. */
export interface RootAccess {
  /** What the holder of this text may do; undefined if it is no root key. Throws, or rejects with, `Unavailable`. */
  readonly check: CheckRootKey;

  /**
   * What the holder of this root key can do. Each call is checked where the root keys are known, and rejects with
   * `RootKeyRefused` if this is not one of them, or no longer, and with `Forbidden` if it may not do this: then nothing was
   * read or changed. What belongs to APIs that the root key is not for is missing.
   */
  manage(rootKey: Secret): Management;
}

/** The verdict may be over already: whoever uses it compares its expiry with a clock. */
export type CheckRootKey = (presented: Secret) => MaybePromise<RootKeyVerdict | undefined>;
