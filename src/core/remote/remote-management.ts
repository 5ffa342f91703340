import type { Secret } from "../../domain/secret.ts";
import type { KeptAnswer, KeyManagement } from "../../store/key-store.ts";
import { type RootAccess, refusedManagement } from "../../store/root-access.ts";
import { answerOf, type Question, rootKeyMax } from "../wire.ts";
import { toWireCreation } from "../wire-keys.ts";
import type { Coordinators } from "./coordinators.ts";
import { within } from "./within.ts";

const late = "the coordinator has not answered in time";

/**
 * Manages keys at a coordinator, which checks the root key with every call. This edge knows no root keys. What changes
 * something is sent once: if its answer is lost, its outcome is unknown.
 */
export function remoteAccess(coordinators: Coordinators, timeoutMs: () => number): RootAccess {
  const read = (key: string, question: Question) => within(timeoutMs(), coordinators.read(key, question), late);
  const change = (key: string, question: Question) => within(timeoutMs(), coordinators.call(key, question), late);

  return {
    async isRootKey(presented: Secret) {
      const rootKey = presented.reveal();
      if (rootKey.length > rootKeyMax) return false;
      const question: Question = { case: "rootKey", value: { rootKey } };
      return answerOf(await read("root keys", question), "rootKey").isValid;
    },

    manage(presented: Secret): KeyManagement {
      const rootKey = presented.reveal();
      if (rootKey.length > rootKeyMax) return refusedManagement;
      return {
        async create(key, idempotency) {
          const question: Question = { case: "create", value: toWireCreation(rootKey, key, idempotency) };
          const { repeated } = answerOf(await change(key.id, question), "create");
          return repeated === undefined ? { outcome: "created" } : { outcome: "repeated", record: plain(repeated) };
        },

        async findKeptAnswer(lookup, nowMs) {
          const question: Question = { case: "keptAnswer", value: { rootKey, lookup, nowMs } };
          const kept = answerOf(await read(lookup, question), "keptAnswer");
          return kept.requestDigest === "" ? undefined : plain(kept);
        },

        async mutate(keyId, mutation) {
          const value = { rootKey, keyId, mutationJson: JSON.stringify(mutation) };
          const { found, digests } = answerOf(await change(keyId, { case: "mutate", value }), "mutate");
          return found ? digests : undefined;
        },
      };
    },
  };
}

/** Without what makes it a message: it may go on to another thread. */
function plain({ requestDigest, sealedAnswer }: KeptAnswer): KeptAnswer {
  return { requestDigest, sealedAnswer };
}
