/*
 * Settles many keys' charges in one statement, which is one transaction.
 *
 * Locks, in this order: the writer's row, then the counters in the order of their keys, so that no two statements wait
 * for each other in a circle. The clock is read after the locks are held. Missing keys drop out of the join.
 *
 * A repeat of the same sequence number changes nothing: the writer's row is then no longer at the number before, `w` is
 * empty, and so is everything behind it. What the first run came to stands in the writer's row, under a nonce, so that
 * a writer that shares an id by mistake cannot take another's result for its own.
 *
 * $1 writer  $2 sequence number  $3 nonce  $4 key ids  $5 uses wanted  $6 now in ms, or null for the database's clock
 */
export const settleText = `
WITH w AS MATERIALIZED (
  SELECT id FROM usage_writers WHERE id = $1 AND seq = $2::bigint - 1 FOR UPDATE
), locked AS MATERIALIZED (
  SELECT k.*, u.wanted
  FROM unnest($4::text[], $5::int[]) AS u (key_id, wanted) JOIN key_usage k ON k.key_id = u.key_id
  WHERE EXISTS (SELECT FROM w)
  ORDER BY k.key_id
  FOR UPDATE OF k
), timed AS MATERIALIZED (
  SELECT *, COALESCE($6::bigint, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint) AS now_ms FROM locked
), dated AS (
  SELECT *,
    to_timestamp(now_ms / 1000.0) AT TIME ZONE 'UTC' AS now_utc,
    to_timestamp(refilled_through_ms / 1000.0) AT TIME ZONE 'UTC' AS through_utc
  FROM timed
), passed AS (
  SELECT *, GREATEST(0, CASE refill_interval
    WHEN 'daily' THEN floor(now_ms / 86400000.0) - floor(refilled_through_ms / 86400000.0)
    WHEN 'monthly' THEN (extract(year FROM now_utc) - extract(year FROM through_utc)) * 12
                        + extract(month FROM now_utc) - extract(month FROM through_utc)
    ELSE 0 END)::bigint AS boundaries
  FROM dated
), refilled AS (
  SELECT *,
    CASE WHEN boundaries = 0 THEN remaining
         WHEN refill_carry_over = 1 THEN LEAST(2147483647, remaining + refill_amount * boundaries)
         ELSE GREATEST(remaining, refill_amount) END AS available,
    CASE WHEN boundaries = 0 THEN refilled_through_ms
         ELSE (extract(epoch FROM date_trunc(CASE refill_interval WHEN 'daily' THEN 'day' ELSE 'month' END, now_utc)) * 1000)::bigint
         END AS through_ms
  FROM passed
), settled AS MATERIALIZED (
  SELECT key_id, boundaries, through_ms, LEAST(available, wanted) AS granted, available - LEAST(available, wanted) AS after
  FROM refilled
), spent AS (
  UPDATE key_usage k SET remaining = s.after, refilled_through_ms = s.through_ms
  FROM settled s WHERE k.key_id = s.key_id AND (s.granted > 0 OR s.boundaries > 0)
), kept AS (
  UPDATE usage_writers SET seq = $2::bigint, nonce = $3, updated_at = clock_timestamp(),
    result = (SELECT COALESCE(jsonb_agg(jsonb_build_array(key_id, granted, after)), '[]') FROM settled)
  WHERE id = $1 AND EXISTS (SELECT FROM w)
)
SELECT (SELECT count(*) FROM w) AS fresh,
       (SELECT jsonb_agg(jsonb_build_array(key_id, granted, after)) FROM settled) AS result`;

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

/** The clock that refills go by. */
export const nowText = "SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now_ms";
