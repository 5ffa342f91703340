/*
 * One statement, which is one transaction, that is applied at most once however often it is sent.
 *
 * It locks the writer's row first. A repeat of the same sequence number changes nothing: the row is then no longer below
 * that number, so `w` and every later step are empty. The result of the first run is stored in the writer's row with a
 * nonce, so that two writers which share an id by mistake cannot mix up their results. Numbers only grow, with gaps
 * where a batch was refused: what is sent after a refusal has a new number.
 *
 * Nothing depends on the session, which a pooler may have given to another client before: see `settingsText`.
 *
 * $1 writer  $2 sequence number  $3 nonce  $4 now in ms, or null for the database's clock; the steps' own follow
 */

export interface GuardedSteps {
  /** The table whose rows the steps lock, by `subject`. $5 holds the subjects. */
  readonly table: string;
  /**
   * They begin with `locked`: rows taken only where `w` has one, with `orSkip` behind its FOR UPDATE. They end in
   * `settled`.
   */
  readonly steps: (orSkip: string) => string;
  /** What is answered of each row of `settled`. */
  readonly row: string;
  /** Whether one of the steps is recursive. */
  readonly isRecursive?: boolean;
}

export interface LockRule {
  /** How long to wait for one lock. After that the whole statement fails with 55P03. */
  readonly lockMs: number;
  /** Skips rows locked by other transactions, and returns only their subjects. */
  readonly skipLocked?: boolean;
}

export function guardedText(
  { table, steps, row, isRecursive = false }: GuardedSteps,
  { lockMs, skipLocked = false }: LockRule,
): string {
  const settled = `(SELECT jsonb_agg(jsonb_build_array(${row})) FROM settled)`;
  const skipped = `(SELECT jsonb_agg(jsonb_build_array(subject)) FROM skipped)`;
  const result = skipLocked ? `COALESCE(${settled}, '[]') || COALESCE(${skipped}, '[]')` : `COALESCE(${settled}, '[]')`;
  return `
WITH ${isRecursive ? "RECURSIVE " : ""}${settingsText(lockMs)}, w AS MATERIALIZED (
  SELECT id FROM usage_writers WHERE id = $1 AND seq < $2::bigint AND (SELECT is_safe FROM settings) FOR UPDATE
), ${steps(skipLocked ? "SKIP LOCKED" : "").trim()}${skipLocked ? `, ${skippedText(table)}` : ""}, kept AS (
  UPDATE usage_writers SET seq = $2::bigint, nonce = $3, updated_at = clock_timestamp(), result = ${result}
  WHERE id = $1 AND EXISTS (SELECT FROM w)
)
SELECT (SELECT is_safe FROM settings) AS is_safe, (SELECT count(*) FROM w) AS fresh, ${result} AS result,
  ${ledgerNowMs} AS now_ms`;
}

/** The result for a skipped row. The row exists, so it must not look like a missing one. */
function skippedText(table: string): string {
  return `skipped AS MATERIALIZED (
  SELECT u.subject FROM unnest($5::text[]) AS u (subject) JOIN ${table} t ON t.subject = u.subject
  WHERE EXISTS (SELECT FROM w) AND NOT EXISTS (SELECT FROM locked l WHERE l.subject = u.subject)
)`;
}

/**
 * The settings that the transaction depends on, set for it alone; what cannot be set any more is checked. It is durable
 * when acknowledged, whatever the role's default is, and it sees the newest version of each row that it locks.
 * `set_config` is volatile and the step is materialized, so it runs, once, before the first lock is asked for.
 */
export function settingsText(lockMs: number): string {
  return `settings AS MATERIALIZED (
  SELECT set_config('synchronous_commit', 'on', true) = 'on'
    AND set_config('lock_timeout', '${Math.ceil(lockMs)}ms', true) IS NOT NULL
    AND current_setting('transaction_isolation') = 'read committed' AS is_safe
)`;
}

/** The ledgers' clock. Volatile, unlike `now()`: it is read for each row after that row is locked. */
export const databaseNowMs = "floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint";

export const ledgerNowMs = `COALESCE($4::bigint, ${databaseNowMs})`;

export const nowText = `SELECT ${databaseNowMs} AS now_ms`;

/** A writer begins at 0. Harmless when repeated. $1 writer */
export const beginText = ({ lockMs }: LockRule) => `
WITH ${settingsText(lockMs)}, begun AS (
  INSERT INTO usage_writers (id, seq, nonce, updated_at) SELECT $1::text, 0, '', clock_timestamp() FROM settings WHERE is_safe
  ON CONFLICT (id) DO NOTHING
)
SELECT is_safe FROM settings`;

/**
 * The result of a sequence number if the nonce matches; otherwise null. It writes, so that its own COMMIT waits for the
 * synchronous standby, and so for everything before: a result that a failover could undo is never used.
 * $1 writer  $2 sequence number  $3 nonce
 */
export const recoverText = ({ lockMs }: LockRule) => `
WITH ${settingsText(lockMs)}, recovered AS (
  UPDATE usage_writers SET updated_at = clock_timestamp()
  WHERE id = $1 AND seq = $2::bigint AND nonce = $3 AND (SELECT is_safe FROM settings) RETURNING result
)
SELECT is_safe, (SELECT result FROM recovered) AS result FROM settings`;

/** Writers that have not written for a day belong to processes that are gone. */
export const deleteIdleWritersText =
  "DELETE FROM usage_writers WHERE updated_at < clock_timestamp() - interval '1 day'";

/** What a statement settles: rows of these subjects. */
export interface LaneItem {
  readonly subject: string;
  readonly shared?: string;
}

/** What a lane runs for a batch. It depends on nothing but the items: a repeat is the same statement. */
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
  return new Map(rows.map((row) => [row[0], row.length === 1 ? "locked" : (row as Row)]));
}
