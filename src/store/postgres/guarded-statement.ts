/*
 * One statement, which is one transaction, that is applied at most once however often it is sent.
 *
 * It locks the writer's row first. A repeat of the same sequence number changes nothing: the row is then no longer at the
 * number before, `w` is empty, and so is everything behind it. What the first run came to stands in the writer's row,
 * under a nonce, so that a writer that shares an id by mistake cannot take another's result for its own.
 *
 * $1 writer  $2 sequence number  $3 nonce  $4 now in ms, or null for the database's clock; the steps' own follow
 */

/** The steps begin with rows taken only where `w` has one, and end in `settled`, whose `row` is what is answered. */
export function guardedText({ steps, row }: { steps: string; row: string }): string {
  const result = `jsonb_agg(jsonb_build_array(${row}))`;
  return `
WITH w AS MATERIALIZED (
  SELECT id FROM usage_writers WHERE id = $1 AND seq = $2::bigint - 1 FOR UPDATE
), ${steps.trim()}, kept AS (
  UPDATE usage_writers SET seq = $2::bigint, nonce = $3, updated_at = clock_timestamp(),
    result = (SELECT COALESCE(${result}, '[]') FROM settled)
  WHERE id = $1 AND EXISTS (SELECT FROM w)
)
SELECT (SELECT count(*) FROM w) AS fresh, (SELECT ${result} FROM settled) AS result, ${ledgerNowMs} AS now_ms`;
}

/** The clock of the ledgers. It is volatile: read for each row after that row is locked, unlike `now()`. */
const databaseNowMs = "floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint";

export const ledgerNowMs = `COALESCE($4::bigint, ${databaseNowMs})`;

export const nowText = `SELECT ${databaseNowMs} AS now_ms`;

/** A writer begins at 0. Harmless when repeated. $1 writer */
export const beginText =
  "INSERT INTO usage_writers (id, seq, nonce, updated_at) VALUES ($1, 0, '', clock_timestamp()) ON CONFLICT (id) DO NOTHING";

/**
 * What a sequence number came to, if it was this nonce's. It writes, so that its own COMMIT waits for the synchronous
 * standby, and with it everything before: a result that a failover could still undo is never acted upon.
 * $1 writer  $2 sequence number  $3 nonce
 */
export const recoverText =
  "UPDATE usage_writers SET updated_at = clock_timestamp() WHERE id = $1 AND seq = $2::bigint AND nonce = $3 RETURNING result";

/** Writers that have not written for a day belong to processes that are gone. */
export const forgetText = "DELETE FROM usage_writers WHERE updated_at < clock_timestamp() - interval '1 day'";
