import type { MaybePromise } from "../../domain/maybe-promise.ts";
import { Unavailable } from "../../domain/unavailable.ts";
import { type Command, fieldsOf, type IdempotencyRecord, methodOf } from "../commands.ts";
import type { ConflictReason, Management, Outcome } from "../management.ts";
import type { Answers, Query } from "../queries.ts";
import { createApiPlan, deleteApiPlan } from "./change-apis.ts";
import { createKeyPlan, deleteKeyPlan, rerollKeyPlan } from "./change-keys.ts";
import { createOwnerPlan, deleteOwnerPlan } from "./change-owners.ts";
import { changePlan, updatePlan } from "./change-resources.ts";
import { endKeysPlan } from "./end-keys.ts";
import { findKeptAnswer, keepAnswer } from "./idempotency-rows.ts";
import { importKeysPlan } from "./import-keys.ts";
import { listEvents } from "./list-events.ts";
import { listKeys } from "./list-keys.ts";
import { listApis, listOwners, listRootKeys } from "./list-resources.ts";
import { hasCounterCheck, ownerHasCounterCheck, remainingMaxCheck, remainingMinCheck } from "./migrations.ts";
import type { ChangePlan, ChangeTarget } from "./plan.ts";
import { readSpending } from "./read-spending.ts";
import { type Sql, sql, sqlText, whole } from "./sql.ts";
import { CheckViolation, type SqlEngine, UniqueViolation } from "./sql-engine.ts";
import { createRootKeyPlan, revokeRootKeyPlan } from "./sql-root-key-store.ts";
import { readKeyOfSecret, readOwnerOfKey, readResource } from "./stored-rows.ts";
import { updateRemainingPlan } from "./update-remaining.ts";

type MakePlan<Made = Command> = (engine: SqlEngine, command: Made) => MaybePromise<ChangePlan>;
type GiveAnswer<Asked = Query, Answer = unknown> = (engine: SqlEngine, query: Asked) => Promise<Answer>;

const plans: { readonly [Kind in Command["kind"]]: MakePlan<Extract<Command, { kind: Kind }>> } = {
  createKey: createKeyPlan,
  createOwner: createOwnerPlan,
  createApi: createApiPlan,
  createRootKey: createRootKeyPlan,
  updateKey: updatePlan,
  updateOwner: updatePlan,
  updateApi: updatePlan,
  updateRootKey: updatePlan,
  updateRemaining: updateRemainingPlan,
  updateOwnerRemaining: updateRemainingPlan,
  rerollKey: rerollKeyPlan,
  importKeys: importKeysPlan,
  deleteKey: deleteKeyPlan,
  stopOwner: (engine, command) => updatePlan(engine, { ...command, kind: "updateOwner", changes: { enabled: false } }),
  endOwnerKeys: endKeysPlan,
  deleteOwner: deleteOwnerPlan,
  stopApi: (engine, command) => changePlan(engine, command, { set: { is_deleting: 1 } }),
  deleteApiKeys: endKeysPlan,
  deleteApi: deleteApiPlan,
  revokeRootKey: revokeRootKeyPlan,
};

const answers: { readonly [Kind in Query["kind"]]: GiveAnswer<Extract<Query, { kind: Kind }>, Answers[Kind]> } = {
  key: readResource,
  owner: readResource,
  api: readResource,
  rootKey: readResource,
  keptAnswer: findKeptAnswer,
  keyOfSecret: readKeyOfSecret,
  ownerOfKey: readOwnerOfKey,
  keys: listKeys,
  events: listEvents,
  rootKeys: listRootKeys,
  apis: listApis,
  owners: listOwners,
  spending: readSpending,
};

/** Commands and queries in SQL, the same on every engine. */
export function createSqlManagement(engine: SqlEngine): Management {
  return {
    async change<Made extends Command>(command: Made, idempotency?: IdempotencyRecord) {
      const planned = (plans[command.kind] as MakePlan)(engine, command);
      // Only if it has to: changes of one turn share a commit of the embedded engine.
      const plan = planned instanceof Promise ? await planned : planned;
      return (await outcomeOf(plan, command, idempotency)) as Outcome<Made["kind"]>;
    },

    async read<Asked extends Query>(query: Asked) {
      return (await (answers[query.kind] as GiveAnswer)(engine, query)) as Answers[Asked["kind"]];
    },
  };

  async function outcomeOf(
    plan: ChangePlan,
    command: Command,
    idempotency: IdempotencyRecord | undefined,
  ): Promise<Outcome<Command["kind"]>> {
    const outcome = await carriedOut(plan, command, idempotency);
    if (idempotency !== undefined && outcome?.outcome !== "done") {
      // Perhaps because the change was made before, such as a deletion that is repeated.
      const record = await findKeptAnswer(engine, { lookup: idempotency.lookup, nowMs: idempotency.createdAtMs });
      if (record !== undefined) return { outcome: "repeated", record };
    }
    // Only if it expired just then: the repeated request may try again.
    if (outcome === undefined) throw new Unavailable("the kept answer has just expired");
    return outcome;
  }

  /** Undefined if the idempotency record is there already: then nothing has changed. */
  async function carriedOut(
    { target, first, events, isMade, feed, rest, outcomeOf }: ChangePlan,
    command: Command,
    idempotency: IdempotencyRecord | undefined,
  ): Promise<Outcome<Command["kind"]> | undefined> {
    const noted = [
      ...(idempotency === undefined ? [] : keepAnswer(idempotency, target, command.event, isMade)),
      events ?? addEvent(command, target),
      ...(feed === undefined ? [] : [feed]),
    ];
    try {
      const results = await engine.atomically([...first, ...noted, ...rest]);
      const announced = feed && results[first.length + noted.length - 1];
      return await outcomeOf(results.slice(0, first.length), results.slice(first.length + noted.length), announced);
    } catch (error) {
      const reason = error instanceof CheckViolation ? conflictReasons.get(error.constraint) : undefined;
      if (reason !== undefined) return { outcome: "conflict", reason };
      if (error instanceof UniqueViolation && idempotency !== undefined) return undefined;
      throw error;
    }
  }
}

/** Why a constraint has refused a change. There is none of a constraint that no command can violate. */
const conflictReasons = new Map<string, ConflictReason>([
  [hasCounterCheck, "noCounter"],
  [ownerHasCounterCheck, "noCounter"],
  [remainingMinCheck, "belowZero"],
  [remainingMaxCheck, "aboveMax"],
]);

/** To be part of the transaction that makes the change. A change that is not made adds nothing. */
function addEvent(command: Command, { table, id: targetId }: ChangeTarget): Sql {
  const { id, atMs, actor } = command.event;
  const { apiId, apiIds = sql`NULL` } = concerned[table];
  const fields = sqlText(fieldsOf(command).join());
  return sql`INSERT INTO events (id, at_ms, method, actor, target_id, api_id, api_ids, fields, version)
    SELECT event_id, ${whole(atMs)}, ${sqlText(methodOf(command))}, ${sqlText(actor)}, id, ${apiId}, ${apiIds}, ${fields}, version
    FROM ${sql.ref(table)} WHERE id = ${targetId} AND event_id = ${id}`;
}

/** The API that a change concerns, as a column of its target, and all of them where there can be several. */
const concerned: { readonly [Table in ChangeTarget["table"]]: { readonly apiId: Sql; readonly apiIds?: Sql } } = {
  keys: { apiId: sql`api_id` },
  apis: { apiId: sql`id` },
  owners: { apiId: sql`first_api_id`, apiIds: sql`api_ids` },
  // It concerns the service.
  root_keys: { apiId: sql`NULL` },
};
