import { andThen, type MaybePromise } from "../../domain/maybe-promise.ts";
import { type Resource, resources } from "../../domain/resources.ts";
import type { RefillRule } from "../../domain/usage.ts";
import {
  type Command,
  type NewEvent,
  resourceOf,
  type UpdateApi,
  type UpdateKey,
  type UpdateOwner,
  type UpdateRootKey,
} from "../commands.ts";
import type { ConflictReason, Outcome } from "../management.ts";
import { holderOf, needsCounter, setRefill } from "./change-counters.ts";
import { allColumnsOf, type ColumnValues, columnsOf } from "./field-columns.ts";
import { hasStrict, setWindows } from "./limit-windows.ts";
import { type ChangePlan, type ChangeTarget, notTouched, type Rows, selectVersion, touchRow } from "./plan.ts";
import type { Sql, SqlValue } from "./sql.ts";
import { addChange } from "./sql-change-feed.ts";
import type { SqlEngine } from "./sql-engine.ts";
import { selectResource, storedOf, tables } from "./stored-rows.ts";

/* What changes of all resources have in common. */

export function targetOf(resource: Resource, id: string): ChangeTarget {
  return { table: tables[resource], id };
}

/** The row of something new: the columns of its fields, and those that every resource has. */
export function newRow(
  resource: Resource,
  created: { readonly id: string },
  { id: event_id, atMs }: NewEvent,
): ColumnValues {
  const common = { id: created.id, created_at_ms: atMs, updated_at_ms: atMs, version: 1, event_id };
  return { ...allColumnsOf(resources[resource], created), ...common };
}

/** What a creation answers whose first statement is the insertion, and whose last one selects what was stored. */
export function createdOutcome(engine: SqlEngine, resource: Resource, reason: ConflictReason): ChangePlan["outcomeOf"] {
  return ([inserted], rest) => {
    if (!inserted?.rows.length) return { outcome: "conflict", reason };
    return andThen(storedOf(engine, resource, rest.at(-1)), (answer) => {
      return { outcome: "done", changed: [], answer: answer as never };
    });
  };
}

/** A command about something that is there. */
type ChangeCommand = Extract<Command, { readonly id: string }> & { readonly ifVersion?: number | undefined };

interface ChangeParts {
  /** Columns to set. */
  readonly set?: Readonly<Record<string, Sql | SqlValue>>;
  /** In SQL: only if this holds of the row. */
  readonly only?: Sql | undefined;
  /** What else is done, if the row was changed. */
  readonly rest?: readonly Sql[];
  /** By what the rest has answered, and the version. */
  readonly answerOf?: (rest: readonly Rows[], version: number) => MaybePromise<unknown>;
}

/** Notes the change in the row of its target, announces it to the caches, and does the rest. */
export function changePlan(engine: SqlEngine, command: ChangeCommand, parts: ChangeParts = {}): ChangePlan {
  const { id, ifVersion, event } = command;
  const { set = {}, only, rest = [], answerOf = () => undefined } = parts;
  const resource = resourceOf(command);
  const target = targetOf(resource, id);
  const feed = kindsOfNews[resource];
  return {
    target,
    first: [
      touchRow(target, event, { set, ifVersion, only }),
      ...(ifVersion === undefined ? [] : [selectVersion(target)]),
    ],
    ...(feed && { feed: addChange(engine, feed, id, event) }),
    rest,
    outcomeOf([touched, found], answers, announced) {
      const row = touched?.rows[0] as { readonly version: number } | undefined;
      if (row === undefined) return notTouched(found);
      return andThen(answerOf(answers, row.version), (answer) => {
        const done = { outcome: "done", changed: resource === "key" ? [changedKey(id, announced)] : [] } as const;
        return (answer === undefined ? done : { ...done, answer }) as Outcome<Command["kind"]>;
      });
    },
  };
}

/** The kind of change that is announced to caches; undefined for a resource that no cache holds. */
const kindsOfNews = { key: "key", owner: "owner", rootKey: "rootKeys", api: undefined } as const;

function changedKey(keyId: string, announced: Rows | undefined) {
  const row = announced?.rows[0] as { readonly digests: string } | undefined;
  return { keyId, digests: row?.digests.split(",") };
}

export type UpdateCommand = UpdateKey | UpdateOwner | UpdateApi | UpdateRootKey;

/** Sets the columns of the fields that are changed, and with them the windows of strict limits and the refill rule. */
export function updatePlan(engine: SqlEngine, command: UpdateCommand): MaybePromise<ChangePlan> {
  const { id, event } = command;
  const resource = resourceOf(command);
  const { refill } = command.changes as { readonly refill?: RefillRule | null };
  const isTimed = refill || (command.kind === "updateOwner" && hasStrict(command.changes.rateLimits));
  return andThen(isTimed ? engine.ledgerNowMs() : event.atMs, (nowMs) =>
    changePlan(engine, command, {
      set: { ...columnsOf(resources[resource], command.changes), ...furtherColumns(command) },
      rest: [
        // Empty for resources without limits.
        ...setWindows(engine, command as UpdateKey | UpdateOwner, nowMs),
        ...(refill === undefined ? [] : [setRefill(engine, holderOf(resource, id), refill, nowMs, event)]),
        selectResource(resource, id),
      ],
      answerOf: (rest) => storedOf(engine, resource, rest.at(-1)),
    }),
  );
}

/** Columns that hold no field of their own. */
function furtherColumns({ kind, changes }: UpdateCommand): Readonly<Record<string, Sql | SqlValue>> {
  return {
    ...("refill" in changes && changes.refill && { has_counter: needsCounter }),
    ...(kind === "updateOwner" && "apiIds" in changes && changes.apiIds !== undefined && firstApi(changes.apiIds)),
  };
}

/** The column of an owner by which those that a root key may see are found. */
export function firstApi(apiIds: readonly string[] | null | undefined) {
  return { first_api_id: apiIds?.toSorted()[0] ?? null };
}
