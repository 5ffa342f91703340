import { CompiledQuery, Kysely, sql } from "kysely";
import type { Ambient } from "../../ambient/ambient.ts";
import type { Clock } from "../../ambient/clock.ts";
import type { LedgerWatch } from "../ledger-watch.ts";
import { tidyEvents } from "../sql/event-rows.ts";
import { forgetExpiredAnswers } from "../sql/idempotency-rows.ts";
import { limitConcurrency } from "../sql/limit-concurrency.ts";
import { isWindowOfKey } from "../sql/limit-windows.ts";
import { type EmptyStoreOptions, isNewStore, migrateUp, requireData } from "../sql/migrate.ts";
import type { Migration } from "../sql/migrations.ts";
import { removeEndedSecrets } from "../sql/reroll-key.ts";
import type { Schema } from "../sql/schema.ts";
import { tidyChanges } from "../sql/sql-change-feed.ts";
import type { SqlEngine } from "../sql/sql-engine.ts";
import { createSqlManagement } from "../sql/sql-management.ts";
import { createSqlRootKeyStore } from "../sql/sql-root-key-store.ts";
import { tidyWindows } from "../sql/tidy-windows.ts";
import { findUnfinishedCopy } from "../sql/unfinished-copy.ts";
import type { Store } from "../store.ts";
import { applyMigration } from "./apply-migration.ts";
import { type BuildIndexOptions, buildIndex } from "./build-index.ts";
import { makeWindowsText } from "./exchange-statement.ts";
import { databaseNowMs, forgetText, nowText } from "./guarded-statement.ts";
import { type MakeWindows, PermitLane } from "./permit-lane.ts";
import { forgetReadersText, PgChangeFeed } from "./pg-change-feed.ts";
import { createPgDialect, toQuery, toQueryResult, writeTimeouts } from "./pg-dialect.ts";
import { DatabaseRefused, orRefused } from "./pg-error.ts";
import { PgLookups } from "./pg-lookups.ts";
import { pgMigrations } from "./pg-migrations.ts";
import { PgPool, type PgPoolOptions, type Timeouts } from "./pg-pool.ts";
import { PgServers } from "./pg-servers.ts";
import { checkUrl } from "./pg-session.ts";
import { refilledCounter } from "./refill-steps.ts";
import { RoundTrip } from "./round-trip.ts";
import { UsageLane } from "./usage-lane.ts";

interface PgEngineOptions extends Omit<PgPoolOptions, "servers">, Omit<BuildIndexOptions, "servers"> {
  /** May name several servers: the primary among them is used. */
  readonly url: string;
  /** Replaces the database's clock in tests. */
  readonly ledgerClock?: Pick<Clock, "nowMs">;
}

export interface PostgresStoreOptions
  extends PgEngineOptions,
    EmptyStoreOptions,
    Pick<Ambient, "clock" | "random" | "metrics"> {
  /** Of each ledger. */
  readonly lanes: number;
  readonly usageTimeoutMs: number;
  readonly watch?: LedgerWatch;
  /** Replaces the migrations, in tests. */
  readonly migrations?: readonly Migration[];
}

export interface PostgresStore extends Store {
  /** Checks the database. Throws `Unavailable` while it does not answer or accepts no writes. */
  check(): Promise<void>;
}

export interface PgEngine extends SqlEngine {
  readonly servers: PgServers;
  readonly pool: PgPool;
  check(): Promise<void>;
  close(): Promise<void>;
}

/** The store that grows: any number of replicas on one Postgres. Throws `Unavailable` while the database is not there. */
export async function openPostgresStore(options: PostgresStoreOptions): Promise<PostgresStore> {
  const roundTrip = new RoundTrip();
  const engine = openPgEngine({ ...options, roundTrip });
  const { servers } = engine;
  const laneOptions = { ...options, servers, roundTrip, timeoutMs: options.usageTimeoutMs };
  const usageLanes = Array.from({ length: options.lanes }, () => new UsageLane(laneOptions));
  const permitLanes = Array.from(
    { length: options.lanes },
    () => new PermitLane({ ...laneOptions, makeWindows: makeWindowsWith(engine, options) }),
  );
  const lanes = [...usageLanes, ...permitLanes];
  const changes = new PgChangeFeed({ ...options, servers });
  const close = async () => {
    changes.close();
    for (const lane of lanes) lane.close();
    await engine.close();
  };
  try {
    if (options.mustExist) await requireData(engine, "the database");
    const applied = await migrateUp(engine, options.clock.nowMs(), options.migrations ?? pgMigrations);
    if (isNewStore(applied)) options.onCreated?.();
    if ((await findUnfinishedCopy(engine)) !== undefined) throw new DatabaseRefused(unfinishedCopyText);
    // Connects each lane and prepares its statements now: that can take longer than the first uses may wait.
    await Promise.all(lanes.map((lane) => lane.connect()));
    await Promise.all(lanes.map((lane) => lane.apply([])));
    engine.pool.keepOpen();
  } catch (error) {
    await close();
    throw orRefused(error);
  }
  return {
    keys: new PgLookups({ ...options, ...engine, roundTrip }),
    management: createSqlManagement(engine),
    rootKeys: createSqlRootKeyStore(engine),
    changes,
    usageLanes,
    permitLanes,
    roundTripMs: () => roundTrip.ms,
    check: engine.check,
    async tidy(nowMs, eventsBeforeMs) {
      await forgetExpiredAnswers(engine, nowMs);
      await removeEndedSecrets(engine, nowMs);
      await engine.atomically([CompiledQuery.raw(forgetText), CompiledQuery.raw(forgetReadersText)]);
      await tidyChanges(engine);
      await tidyWindows(engine, nowMs);
      if (eventsBeforeMs !== undefined) await tidyEvents(engine, eventsBeforeMs);
    },
    close,
  };
}

function makeWindowsWith(engine: PgEngine, { ledgerClock }: Pick<PgEngineOptions, "ledgerClock">): MakeWindows {
  return async (asks) => {
    const rows = asks.map(({ subject, brought }) => ({ subject, duration_ms: brought?.durationMs }));
    const values = [ledgerClock?.nowMs() ?? null, JSON.stringify(rows)];
    await engine.atomically([CompiledQuery.raw(makeWindowsText, values)]);
  };
}

const unfinishedCopyText =
  "the database has an unfinished copy of an embedded store: run latchkey copy again, or empty the database";

/** It locks nothing, but only a server that accepts writes runs it; a read-only one fails with its own code. */
const checkText = "SELECT FROM usage_writers WHERE false FOR UPDATE";
const checkTimeouts: Timeouts = { waitMs: 1000, queryMs: 1000 };

/** Verifications look keys up over the same connections: lists leave most of them free. */
const scansAtOnce = 2;
const scansWaitingMax = 100;

/** Connects at the first query. Throws `DatabaseRefused` if the URL itself cannot be used. */
export function openPgEngine(options: PgEngineOptions): PgEngine {
  checkUrl(options.url);
  const servers = new PgServers(options.url);
  const pool = new PgPool({ ...options, servers });
  const scanInTurn = limitConcurrency(scansAtOnce, scansWaitingMax);
  return {
    servers,
    pool,
    db: new Kysely<Schema>({ dialect: createPgDialect(pool) }),
    async atomically(queries) {
      const results = await pool.transaction(queries.map(toQuery), writeTimeouts);
      return results.map(toQueryResult);
    },
    async scan(query) {
      const { rows } = await scanInTurn(() => pool.query(toQuery(query), writeTimeouts));
      return rows;
    },
    migrate: (claim, statements) => applyMigration(servers, claim, statements),
    buildIndex: (index) => buildIndex(index, { ...options, servers }),
    tablesThere: sql`(SELECT relname AS name FROM pg_class WHERE relkind IN ('r', 'p') AND pg_table_is_visible(oid))`,
    inPrimaryKey: sql``,
    forKeyShare: sql`FOR KEY SHARE`,
    hasValue: (column, value) => sql`${sql.ref(column)} = ANY (ARRAY[${value}])`,
    isAnyOf: (column, query) => sql<boolean>`${sql.ref(column)} = ANY (ARRAY(${query}))`,
    isListOf: (column, texts) => sql<boolean>`${sql.ref(column)}::jsonb <@ ${JSON.stringify(texts)}::jsonb`,
    // The engine takes such a range for a ninth of the table, and would rather read all of it. It does not with a limit, which
    // no key reaches: it would have had as many names of limits.
    windowsOfKeys: (ids) => sql`SELECT own.subject FROM (${ids}) AS ids CROSS JOIN LATERAL (
      SELECT subject FROM permit_windows WHERE ${isWindowOfKey} ORDER BY subject LIMIT 10000) AS own`,
    forUpdate: sql`FOR UPDATE`,
    thisTransaction: sql<number>`pg_current_xact_id()::text::bigint`,
    oldestOpenTransaction: sql<number>`pg_snapshot_xmin(pg_current_snapshot())::text::bigint`,
    refilledCounter(keyId) {
      const { ledgerClock } = options;
      return refilledCounter(keyId, ledgerClock ? sql`${ledgerClock.nowMs()}::bigint` : sql.raw(databaseNowMs));
    },
    async ledgerNowMs() {
      if (options.ledgerClock !== undefined) return options.ledgerClock.nowMs();
      const { rows } = await pool.query({ text: nowText, values: [] }, writeTimeouts);
      return (rows[0] as { now_ms: number }).now_ms;
    },
    async check() {
      await pool.query({ text: checkText, values: [] }, checkTimeouts);
    },
    close: () => pool.close(),
  };
}
