import type { CompiledQuery, QueryResult, RawBuilder } from "kysely";
import type { MaybePromise } from "../../domain/maybe-promise.ts";
import type { Command } from "../commands.ts";
import type { Outcome } from "../management.ts";

/**
 * A change as statements of one transaction. The first ones write the event's id into the row of the target, which locks it:
 * every change does so before anything else, so that no two wait for each other in a circle. Then come the event, the row of
 * the change feed and the idempotency record, each only if the target has the event's id, then the rest.
 */
export interface Plan {
  readonly target: Target;
  readonly first: readonly CompiledQuery[];
  /** Adds the events of a change that is about other rows than its target. Absent: one event, of the target. */
  readonly events?: CompiledQuery;
  /** In SQL, of a target that the change does not write to: whether the change is made. Absent: if it has the event's id. */
  readonly isMade?: RawBuilder<boolean>;
  /** Adds a row to the change feed. Absent: no cache can know the target. */
  readonly feed?: CompiledQuery;
  readonly rest: readonly CompiledQuery[];
  /** `announced`: what `feed` answers. */
  outcomeOf(
    first: readonly Rows[],
    rest: readonly Rows[],
    announced: Rows | undefined,
  ): MaybePromise<Outcome<Command["kind"]>>;
}

/** What a change is about: the row with this id. */
export interface Target {
  readonly table: "keys" | "owners" | "root_keys" | "apis";
  readonly id: string;
}

export type Rows = Pick<QueryResult<unknown>, "rows">;
