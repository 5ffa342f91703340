import type { MaybePromise } from "../domain/maybe-promise.ts";
import { RootKeyRefused } from "../domain/root-key-refused.ts";
import type { Secret } from "../domain/secret.ts";
import type { Management } from "./management.ts";

const refuse = () => Promise.reject(new RootKeyRefused());
/** What someone without a root key can do: every call rejects. */
export const refusedManagement: Management = { change: refuse, read: refuse };

/** Who may manage stored data, and how. The root keys themselves never leave the place that knows them. */
export interface RootAccess {
  /**
   * Whether this is a root key, compared in constant time where the root keys are known. Throws, or rejects with,
   * `Unavailable`.
   */
  isRootKey(presented: Secret): MaybePromise<boolean>;

  /**
   * What the holder of this root key can do. Each call is checked where the root keys are known, and rejects with
   * `RootKeyRefused` if this is not one of them, or no longer: then nothing was read or changed.
   */
  manage(rootKey: Secret): Management;
}
