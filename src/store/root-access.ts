import type { MaybePromise } from "../domain/maybe-promise.ts";
import { RootKeyRefused } from "../domain/root-key-refused.ts";
import type { Secret } from "../domain/secret.ts";
import type { KeyManagement } from "./key-store.ts";

const refuse = () => Promise.reject(new RootKeyRefused());
/** Keys as someone without a root key manages them: every call rejects. */
export const refusedManagement: KeyManagement = { create: refuse, findKeptAnswer: refuse, mutate: refuse };

/** Who may manage keys, and how. The root keys themselves never leave the place that knows them. */
export interface RootAccess {
  /**
   * Whether this is a root key, compared in constant time where the root keys are known. Throws, or rejects with,
   * `Unavailable`.
   */
  isRootKey(presented: Secret): MaybePromise<boolean>;

  /**
   * Keys as the holder of this root key manages them. Each call is checked where the root keys are known, and rejects with
   * `RootKeyRefused` if this is not one of them, or no longer: then nothing was read or changed.
   */
  manage(rootKey: Secret): KeyManagement;
}
