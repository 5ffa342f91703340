import type { Deadline } from "../../domain/deadlines.ts";
import type { Secret } from "../../domain/secret.ts";
import { type Command, type IdempotencyRecord, targetIdOf } from "../../store/commands.ts";
import type { Management } from "../../store/management.ts";
import type { Answers, Query } from "../../store/queries.ts";
import { type RootAccess, refusedManagement } from "../../store/root-access.ts";
import { answerOf, type Question, rootKeyMax } from "../wire.ts";
import { fromWireOutcome, toWireChange } from "../wire-management.ts";
import { fromWireVerdict } from "../wire-verdict.ts";
import type { Coordinators } from "./coordinators.ts";
import { within } from "./within.ts";

const late = "the coordinator has not answered in time";

/**
 * Manages stored data at a coordinator, which checks the root key with every call. This edge knows no root keys. What changes
 * something is sent once: if its answer is lost, its outcome is unknown.
 */
export function remoteAccess(coordinators: Coordinators, newDeadline: () => Deadline): RootAccess {
  const read = (key: string, question: Question) => within(newDeadline(), coordinators.read(key, question), late);
  const change = (key: string, question: Question) => within(newDeadline(), coordinators.call(key, question), late);

  return {
    async check(presented: Secret) {
      const rootKey = presented.reveal();
      if (rootKey.length > rootKeyMax) return undefined;
      const question: Question = { case: "rootKey", value: { rootKey } };
      return fromWireVerdict(answerOf(await read("root keys", question), "rootKey").verdict);
    },

    manage(presented: Secret): Management {
      const rootKey = presented.reveal();
      if (rootKey.length > rootKeyMax) return refusedManagement;
      return {
        async change<Made extends Command>(command: Made, idempotency?: IdempotencyRecord) {
          const question: Question = { case: "change", value: { rootKey, ...toWireChange(command, idempotency) } };
          return fromWireOutcome<Made["kind"]>(answerOf(await change(targetIdOf(command), question), "change"));
        },

        async read<Asked extends Query>(query: Asked) {
          const queryJson = JSON.stringify(query);
          const question: Question = { case: "read", value: { rootKey, queryJson } };
          const { answerJson } = answerOf(await read(queryJson, question), "read");
          return (answerJson === "" ? undefined : JSON.parse(answerJson)) as Answers[Asked["kind"]];
        },
      };
    },
  };
}
