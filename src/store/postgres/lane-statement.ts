import type { GuardedSteps } from "./guarded-statement.ts";

/** What a statement settles: rows of these subjects. */
export interface LaneItem {
  readonly subject: string;
  readonly shared?: string;
}

/** The statement that a lane runs for a batch. It depends on nothing but the items: a repeat is the same statement. */
export type LaneWork<Item, Row extends KeptRow, Settled> = (
  items: readonly Item[],
) => LaneStatement<Item, Row, Settled>;

export interface LaneStatement<Item, Row extends KeptRow, Settled> {
  readonly steps: GuardedSteps;
  /** The parameters after the guard's own ones. */
  valuesOf(items: readonly Item[]): readonly unknown[];
  /**
   * The results of the items, in order, from what the database stores and returns: one row per subject that is there.
   * "mismatch": the rows cannot be what comes of these items.
   */
  resultsOf(
    items: readonly Item[],
    rows: ReadonlyMap<string, Row | "locked">,
  ): readonly LaneResult<Settled>[] | "mismatch";
}

/** The results where each item is one row of its own. */
export function resultPerRow<Item extends { readonly subject: string }, Row, Settled>(
  settledOf: (row: Row) => Settled,
): (items: readonly Item[], rows: ReadonlyMap<string, Row | "locked">) => readonly LaneResult<Settled>[] {
  return (items, rows) =>
    items.map(({ subject }) => {
      const row = rows.get(subject);
      if (row === undefined) return { outcome: "missing" };
      return row === "locked" ? locked : settledOf(row as Row);
    });
}

export type KeptRow = readonly [subject: string, ...rest: unknown[]];

export type LaneResult<Settled> =
  | Settled
  | { readonly outcome: "missing" }
  | { readonly outcome: "failed"; readonly reason: string };

/** The result of an item that needs a row which somebody else has locked. Nothing was changed for it. */
export const locked = { outcome: "failed", reason: "somebody else has locked the subject's row" } as const;

/** The result for a row that was skipped because another transaction had locked it. */
export type SkippedRow = readonly [subject: string];

/** The rows that the database has answered a batch with. */
export function bySubject<Row extends KeptRow>(
  rows: readonly (Row | SkippedRow)[],
): ReadonlyMap<string, Row | "locked"> {
  return new Map(rows.map((row) => [row[0], isSkipped(row) ? "locked" : (row as Row)]));
}

function isSkipped(row: KeptRow): row is SkippedRow {
  return row.length === 1;
}
