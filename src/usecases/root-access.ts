import { RootKeyRefused } from "../domain/root-key-refused.ts";
import type { Secret } from "../domain/secret.ts";
import type { KeyManagement } from "../store/key-store.ts";
import type { RootAccess } from "../store/root-access.ts";

/** Access to keys where the root keys are known: every call is checked immediately before it is passed on. */
export function createRootAccess(rootKeys: { has(presented: Secret): boolean }, keys: KeyManagement): RootAccess {
  return {
    isRootKey: (presented) => rootKeys.has(presented),
    manage(rootKey) {
      const checkRootKey = () => {
        if (!rootKeys.has(rootKey)) throw new RootKeyRefused();
      };
      return {
        async create(...args) {
          checkRootKey();
          return keys.create(...args);
        },
        async findKeptAnswer(...args) {
          checkRootKey();
          return keys.findKeptAnswer(...args);
        },
        async mutate(...args) {
          checkRootKey();
          return keys.mutate(...args);
        },
      };
    },
  };
}
