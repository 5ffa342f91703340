import { remainingMax } from "../../domain/usage.ts";
import { type Sql, sql } from "./sql.ts";

export type Migration = StatementsMigration | IndexMigration | FillMigration;

/** Statements that are applied in one transaction. They must be quick: replicas serve on the same tables meanwhile. */
export interface StatementsMigration {
  readonly name: string;
  /** `inPrimaryKey`: see `SqlEngine`. */
  up(inPrimaryKey: Sql): readonly Sql[];
}

/**
 * An index on a table that may have many rows. On Postgres it is built while replicas serve, outside a transaction, and
 * without the time-outs of requests. (An index on a table that is made by the same migration belongs into `up`.)
 */
export interface IndexMigration {
  readonly name: string;
  readonly index: IndexDefinition;
}

/**
 * Values for columns that an earlier migration has added, in every row of a table that may be large: piece by piece, each in
 * a transaction of its own. What is interrupted is continued, and several processes may do it at the same time.
 */
export interface FillMigration {
  readonly name: string;
  readonly fill: FillDefinition;
}

export interface FillDefinition {
  readonly table: string;
  /** Its primary key. */
  readonly key: string;
  /** In SQL: whether a row has no values yet. */
  readonly isMissing: Sql;
  /** In SQL: `column = value`, for each column. */
  values(nowMs: number): Sql;
}

/** An index that a migration adds to a table which may be large and in use. */
export interface IndexDefinition {
  readonly name: string;
  readonly table: string;
  /** In SQL: columns, each with its direction if that is not ascending. */
  readonly columns: readonly string[];
  /** In SQL: the rows that it holds. Absent: all. */
  readonly where?: string;
}

/** The same on every engine, except for how it is built. It changes nothing where an index of that name exists. */
export function createIndexText({ name, table, columns, where }: IndexDefinition, how = ""): string {
  const rows = where === undefined ? "" : ` WHERE ${where}`;
  return `CREATE INDEX ${how} IF NOT EXISTS ${name} ON ${table} (${columns.join(", ")})${rows}`;
}

/* The names of constraints, by which a change that one of them refuses is recognised. */
export const hasCounterCheck = "keys_has_counter_check";
export const ownerHasCounterCheck = "owners_has_counter_check";
export const remainingMinCheck = "counters_remaining_min_check";
export const remainingMaxCheck = "counters_remaining_max_check";

/*
 * Only column types that behave the same on every engine are used: text, and integers up to 2^53. Booleans are 0 or 1, times
 * are Unix milliseconds, JSON and digests are text. The row of every resource has `version`, which counts its changes, its
 * creation included, and `event_id`, of its last change: later statements of the change's transaction depend on it.
 */

/** In the order in which they are applied. Never edit one that has been released: add another. */
export const migrations: readonly Migration[] = [
  {
    name: "0001-first",
    up: (inPrimaryKey) =>
      [
        // `is_deleting`: 1 while its keys are being deleted, it takes no new ones.
        sql`CREATE TABLE apis (id text PRIMARY KEY, name text, defaults text NOT NULL, is_deleting integer NOT NULL,
          created_at_ms bigint NOT NULL, updated_at_ms bigint NOT NULL, version bigint NOT NULL, event_id text NOT NULL)`,
        sql`CREATE INDEX apis_by_creation ON apis (created_at_ms, id)`,
        // The digest of its secret is the primary key, so that a look-up finds everything in one search. Ids sort by the time at
        // which they were made. `has_counter`: whether it has a row in `counters`, without one look-ups need not search for it.
        // `secret_created_at_ms`: when its secret was made, with the key or when it was last rerolled.
        sql`CREATE TABLE keys (digest text PRIMARY KEY, id text NOT NULL UNIQUE, api_id text NOT NULL REFERENCES apis (id),
          start text NOT NULL, owner_id text, name text, meta text NOT NULL, enabled integer NOT NULL, expires_at_ms bigint,
          ratelimit_async integer, ratelimit_limit bigint, ratelimit_duration_ms bigint, ratelimits text, cost_max bigint,
          permissions text, ip_allow text, has_counter integer NOT NULL,
          created_at_ms bigint NOT NULL, updated_at_ms bigint NOT NULL, version bigint NOT NULL, event_id text NOT NULL,
          secret_created_at_ms bigint NOT NULL,
          CONSTRAINT ${sql.ref(hasCounterCheck)} CHECK (has_counter IN (0, 1))) ${inPrimaryKey}`,
        // Secrets that were replaced and may be used until they expire: at most one of a key.
        sql`CREATE TABLE ending_secrets (digest text PRIMARY KEY,
          key_id text NOT NULL UNIQUE REFERENCES keys (id) ON DELETE CASCADE, start text NOT NULL,
          created_at_ms bigint NOT NULL, expires_at_ms bigint NOT NULL) ${inPrimaryKey}`,
        sql`CREATE INDEX ending_secrets_expiry ON ending_secrets (expires_at_ms)`,
        // For lists. What they filter by is in the index too, so that keys which do not match need not be read.
        sql`CREATE INDEX keys_by_api ON keys (api_id, id, enabled, expires_at_ms)`,
        sql`CREATE INDEX keys_by_owner ON keys (owner_id, id, enabled, expires_at_ms) WHERE owner_id IS NOT NULL`,
        sql`CREATE INDEX keys_by_owner_and_api ON keys (owner_id, api_id, id, enabled, expires_at_ms)
          WHERE owner_id IS NOT NULL`,
        sql`CREATE INDEX keys_by_name ON keys (api_id, name, id) WHERE name IS NOT NULL`,
        sql`CREATE INDEX keys_by_start ON keys (api_id, start, id)`,
        // Keys do not refer to it: most name owners that have no record. Lists are in the order of `list_id`, the id of the
        // event by which the record was made. `first_api_id`: the smallest of `api_ids`, which whoever may see the owner may see.
        sql`CREATE TABLE owners (id text PRIMARY KEY, list_id text NOT NULL UNIQUE, meta text NOT NULL,
          enabled integer NOT NULL, api_ids text, first_api_id text, ratelimits text, has_counter integer NOT NULL,
          created_at_ms bigint NOT NULL, updated_at_ms bigint NOT NULL, version bigint NOT NULL, event_id text NOT NULL,
          CONSTRAINT ${sql.ref(ownerHasCounterCheck)} CHECK (has_counter IN (0, 1))) ${inPrimaryKey}`,
        // For root keys that are limited to APIs.
        sql`CREATE INDEX owners_by_first_api ON owners (first_api_id, list_id) WHERE first_api_id IS NOT NULL`,
        // What may still be used. A subject is the text under which something is counted: `src/domain/subject.ts`.
        sql`CREATE TABLE counters (subject text PRIMARY KEY, remaining bigint NOT NULL,
          refill_interval text CHECK (refill_interval IN ('daily', 'monthly')), refill_amount bigint,
          refill_carry_over integer, refilled_through_ms bigint,
          CONSTRAINT ${sql.ref(remainingMinCheck)} CHECK (remaining >= 0),
          CONSTRAINT ${sql.ref(remainingMaxCheck)} CHECK (remaining <= ${sql.lit(remainingMax)})) ${inPrimaryKey}`,
        // The windows of strict limits, by subject too: one is made when its subject gets a strict limit. `window_duration_ms`: the
        // duration that it was opened with. `clamped_ends_at_ms`: the end that counts while the ledger's clock is behind, or 0.
        // `rule_limit` and `rule_duration_ms` are in force, null while the subject has no limit. `owner_id`: of an owner's limit.
        sql`CREATE TABLE permit_windows (subject text PRIMARY KEY, gen bigint NOT NULL, ends_at_ms bigint NOT NULL,
          window_duration_ms bigint NOT NULL, clamped_ends_at_ms bigint NOT NULL,
          granted bigint NOT NULL CHECK (granted >= 0), spent bigint NOT NULL CHECK (spent >= 0),
          contended integer NOT NULL, rule_limit bigint, rule_duration_ms bigint, owner_id text) ${inPrimaryKey}`,
        sql`CREATE INDEX permit_windows_by_owner ON permit_windows (owner_id) WHERE owner_id IS NOT NULL`,
        // The generated one has a fixed id: of several first starts only one can store its root key.
        sql`CREATE TABLE root_keys (id text PRIMARY KEY, digest text NOT NULL UNIQUE, start text NOT NULL, name text,
          permissions text NOT NULL, api_ids text, expires_at_ms bigint,
          created_at_ms bigint NOT NULL, updated_at_ms bigint NOT NULL, version bigint NOT NULL, event_id text NOT NULL)`,
        // One row for each change that was made by a root key, `actor`. Ids sort by the time at which they were made. `method`: as
        // it is called in JSON. `api_id`: the API that it concerns, null for the service; `api_ids`: all of them, where there can be
        // several. `fields`: the names of the fields that changed, separated by commas. `version`: the target's, after the change.
        sql`CREATE TABLE events (id text PRIMARY KEY, at_ms bigint NOT NULL, method text NOT NULL, actor text NOT NULL,
          target_id text NOT NULL, api_id text, api_ids text, fields text NOT NULL, version bigint) ${inPrimaryKey}`,
        sql`CREATE INDEX events_by_target ON events (target_id, id)`,
        sql`CREATE INDEX events_by_actor ON events (actor, id)`,
        sql`CREATE INDEX events_by_method ON events (method, id)`,
        // For root keys that are limited to APIs.
        sql`CREATE INDEX events_by_target_and_api ON events (target_id, api_id, id)`,
        sql`CREATE INDEX events_by_api ON events (api_id, id)`,
        sql`CREATE TABLE idempotency (lookup text PRIMARY KEY, request_digest text NOT NULL, sealed_answer text NOT NULL,
          target_id text NOT NULL, expires_at_ms bigint NOT NULL)`,
        sql`CREATE INDEX idempotency_expiry ON idempotency (expires_at_ms)`,
        // The change feed: the transaction that made a change, the id of the key or owner, and the digests of all secrets of a key.
        sql`CREATE TABLE changes (transaction_id bigint NOT NULL,
          kind text NOT NULL CHECK (kind IN ('key', 'owner', 'newOwner', 'rootKeys', 'everything')),
          target_id text, digests text)`,
        sql`CREATE INDEX changes_by_transaction ON changes (transaction_id)`,
        // There is always a newest row, so that the embedded engine can number the next one.
        sql`INSERT INTO changes (transaction_id, kind) VALUES (0, 'everything')`,
        // One row, whose slot is 1; of the other table one at most.
        sql`CREATE TABLE change_feed (slot integer PRIMARY KEY, epoch text NOT NULL, tidied_before bigint NOT NULL,
          has_imported_keys integer NOT NULL)`,
        sql`CREATE TABLE unfinished_copy (slot integer PRIMARY KEY, id text NOT NULL, source text, copied_table text,
          copied_through text)`,
        sql`INSERT INTO change_feed VALUES (1, CAST(random() AS text), 0, 0)`,
      ].map((statement) => statement),
  },
  {
    // They began with o/ as limits of owners do: the counter of an owner `a/b` and the limit `a` of an owner `b` had one name.
    name: "0002-counters-of-owners",
    up: () => [sql`UPDATE counters SET subject = 'c/' || substr(subject, 3) WHERE subject LIKE 'o/%'`],
  },
  {
    name: "0003-environments",
    up: () => [sql`ALTER TABLE keys ADD COLUMN environment text`],
  },
  {
    name: "0004-required-owners",
    up: () => [sql`ALTER TABLE apis ADD COLUMN owners_required integer NOT NULL DEFAULT 0`],
  },
  {
    // What was put into a counter, and when it was read: `src/domain/usage.ts`. -1: of before, and not filled in yet.
    name: "0005-readings",
    up: (inPrimaryKey) => [
      sql`ALTER TABLE counters ADD COLUMN credited bigint NOT NULL DEFAULT -1`,
      sql`ALTER TABLE counters ADD COLUMN metered_hour bigint NOT NULL DEFAULT 0`,
      sql`ALTER TABLE counters ADD COLUMN metered_since_ms bigint NOT NULL DEFAULT 0`,
      sql`ALTER TABLE counters ADD COLUMN former_spent bigint NOT NULL DEFAULT 0`,
      // The last one of a counter that was removed says whose it was: `api_id`, `api_ids` as of an event, and `owner_id`.
      // `former_spent`, here and there: the part that owners had spent who had the same id before.
      sql`CREATE TABLE readings (subject text NOT NULL, hour bigint NOT NULL, spent bigint NOT NULL,
        api_id text, api_ids text, owner_id text, former_spent bigint NOT NULL DEFAULT 0,
        PRIMARY KEY (subject, hour)) ${inPrimaryKey}`,
      // One row, whose slot is 1, or none: the first hour of which all readings are kept, and the first of which those are that
      // come first in a day.
      sql`CREATE TABLE readings_kept (slot integer PRIMARY KEY, first_hour bigint NOT NULL, first_day_hour bigint NOT NULL)`,
    ],
  },
  {
    name: "0006-metered-counters",
    fill: {
      table: "counters",
      key: "subject",
      isMissing: sql`credited = -1`,
      values: (nowMs) => sql`credited = remaining, metered_since_ms = ${nowMs}`,
    },
  },
];
