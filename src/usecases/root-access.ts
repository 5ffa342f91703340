import { RootKeyRefused } from "../domain/root-key-refused.ts";
import type { Secret } from "../domain/secret.ts";
import type { Management } from "../store/management.ts";
import type { RootAccess } from "../store/root-access.ts";

/** Access where the root keys are known: every call is checked immediately before it is passed on. */
export function createRootAccess(rootKeys: { has(presented: Secret): boolean }, management: Management): RootAccess {
  return {
    isRootKey: (presented) => rootKeys.has(presented),
    manage(rootKey) {
      const checkRootKey = () => {
        if (!rootKeys.has(rootKey)) throw new RootKeyRefused();
      };
      return {
        async change(command, idempotency) {
          checkRootKey();
          return management.change({ ...command, event: { ...command.event, actor: "root" } }, idempotency);
        },
        async read(query) {
          checkRootKey();
          return management.read(query);
        },
      };
    },
  };
}
