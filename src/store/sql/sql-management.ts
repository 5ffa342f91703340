import type { MaybePromise } from "../../domain/maybe-promise.ts";
import { Unavailable } from "../../domain/unavailable.ts";
import type { Command, IdempotencyRecord } from "../commands.ts";
import type { Management, Outcome } from "../management.ts";
import type { Answers, Query } from "../queries.ts";
import { createApiPlan, updateApiPlan } from "./change-apis.ts";
import { createKeyPlan, deleteKeyPlan, updateKeyPlan } from "./change-keys.ts";
import { createOwnerPlan, deleteOwnerPlan, updateOwnerPlan } from "./change-owners.ts";
import {
  createRootKeyPlan,
  listRootKeys,
  readRootKey,
  revokeRootKeyPlan,
  updateRootKeyPlan,
} from "./change-root-keys.ts";
import { conflictOf } from "./conflicts.ts";
import { deleteApiKeysPlan, deleteApiPlan, stopApiPlan } from "./delete-apis.ts";
import { addEvent } from "./event-rows.ts";
import { findKeptAnswer, keepAnswer } from "./idempotency-rows.ts";
import { importKeysPlan } from "./import-keys.ts";
import { listEvents } from "./list-events.ts";
import { listKeys } from "./list-keys.ts";
import type { Plan } from "./plan.ts";
import { listApis, readApi } from "./read-apis.ts";
import { readKey, readKeyOfSecret } from "./read-keys.ts";
import { listOwners, readOwner, readOwnerOfKey } from "./read-owners.ts";
import { rerollKeyPlan } from "./reroll-key.ts";
import { CheckViolation, type SqlEngine, UniqueViolation } from "./sql-engine.ts";
import { updateRemainingPlan } from "./update-remaining.ts";

/** Commands and queries in SQL, the same on every engine. */
export function createSqlManagement(engine: SqlEngine): Management {
  return {
    async change<Made extends Command>(command: Made, idempotency?: IdempotencyRecord) {
      const planned = planOf(command);
      // Only if it has to: changes of one turn share a commit of the embedded engine.
      const plan = planned instanceof Promise ? await planned : planned;
      return (await outcomeOf(plan, command, idempotency)) as Outcome<Made["kind"]>;
    },

    read: <Asked extends Query>(query: Asked) => answer(query) as Promise<Answers[Asked["kind"]]>,
  };

  async function answer(query: Query): Promise<Answers[Query["kind"]]> {
    switch (query.kind) {
      case "keptAnswer":
        return findKeptAnswer(engine, query.lookup, query.nowMs);
      case "key":
        return readKey(engine, "id", query.keyId);
      case "keyOfSecret":
        return readKeyOfSecret(engine, query.digest, query.nowMs);
      case "keys":
        return listKeys(engine, query);
      case "events":
        return listEvents(engine, query);
      case "rootKey":
        return readRootKey(engine, query.rootKeyId);
      case "rootKeys":
        return listRootKeys(engine, query);
      case "api":
        return readApi(engine, query.apiId);
      case "apiDefaults":
        return (await readApi(engine, query.apiId))?.defaults;
      case "apis":
        return listApis(engine, query);
      case "owner":
        return readOwner(engine, query.ownerId);
      case "ownerOfKey":
        return readOwnerOfKey(engine, query.keyId);
      case "owners":
        return listOwners(engine, query);
    }
  }

  function planOf(command: Command): MaybePromise<Plan> {
    switch (command.kind) {
      case "createKey":
        return createKeyPlan(engine, command);
      case "updateKey":
        return updateKeyPlan(engine, command);
      case "updateRemaining":
      case "updateOwnerRemaining":
        return updateRemainingPlan(engine, command);
      case "rerollKey":
        return rerollKeyPlan(engine, command);
      case "deleteKey":
        return deleteKeyPlan(engine, command);
      case "importKeys":
        return importKeysPlan(engine, command);
      case "createRootKey":
        return createRootKeyPlan(engine, command);
      case "updateRootKey":
        return updateRootKeyPlan(engine, command);
      case "revokeRootKey":
        return revokeRootKeyPlan(engine, command);
      case "createApi":
        return createApiPlan(engine, command);
      case "updateApi":
        return updateApiPlan(engine, command);
      case "stopApi":
        return stopApiPlan(engine, command);
      case "deleteApiKeys":
        return deleteApiKeysPlan(engine, command);
      case "deleteApi":
        return deleteApiPlan(engine, command);
      case "createOwner":
        return createOwnerPlan(engine, command);
      case "updateOwner":
        return updateOwnerPlan(engine, command);
      case "stopOwner":
        return updateOwnerPlan(engine, { ...command, changes: { enabled: false } });
      case "deleteOwner":
        return deleteOwnerPlan(engine, command);
    }
  }

  async function outcomeOf(
    plan: Plan,
    command: Command,
    idempotency: IdempotencyRecord | undefined,
  ): Promise<Outcome<Command["kind"]>> {
    const outcome = await carriedOut(plan, command, idempotency);
    if (idempotency === undefined || (outcome !== undefined && outcome.outcome === "done")) return outcome ?? unknown();
    // Perhaps because the change was made before, such as a deletion that is repeated.
    const record = await findKeptAnswer(engine, idempotency.lookup, idempotency.createdAtMs);
    // Undefined only if it expired just then: the repeated request may try again.
    return record === undefined ? (outcome ?? unknown()) : { outcome: "repeated", record };
  }

  /** Undefined if the idempotency record is there already: then nothing has changed. */
  async function carriedOut(
    { target, first, events, isMade, feed, rest, outcomeOf }: Plan,
    command: Command,
    idempotency: IdempotencyRecord | undefined,
  ): Promise<Outcome<Command["kind"]> | undefined> {
    const noted = [
      ...(idempotency === undefined ? [] : keepAnswer(engine, idempotency, target, command.event, isMade)),
      events ?? addEvent(engine, command, target),
      ...(feed === undefined ? [] : [feed]),
    ];
    try {
      const results = await engine.atomically([...first, ...noted, ...rest]);
      const told = feed && results[first.length + noted.length - 1];
      return await outcomeOf(results.slice(0, first.length), results.slice(first.length + noted.length), told);
    } catch (error) {
      const reason = error instanceof CheckViolation ? conflictOf(error) : undefined;
      if (reason !== undefined) return { outcome: "conflict", reason };
      if (error instanceof UniqueViolation && idempotency !== undefined) return undefined;
      throw error;
    }
  }
}

function unknown(): never {
  throw new Unavailable("the kept answer has just expired");
}
