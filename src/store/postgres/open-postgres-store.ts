import type { Ambient } from "../../ambient/ambient.ts";
import type { Clock } from "../../ambient/clock.ts";
import { hourMs } from "../../domain/usage.ts";
import type { LedgerWatch } from "../ledger-watch.ts";
import { findUnfinishedCopy } from "../sql/copied-tables.ts";
import { limitConcurrency } from "../sql/limit-concurrency.ts";
import { isWindowOfKey } from "../sql/limit-windows.ts";
import { isNewStore, migrateUp, requireData, type StoreStartOptions } from "../sql/migrate.ts";
import type { Migration } from "../sql/migrations.ts";
import { type Sql, sql } from "../sql/sql.ts";
import type { SqlEngine } from "../sql/sql-engine.ts";
import { createSqlManagement } from "../sql/sql-management.ts";
import { createSqlRootKeyStore } from "../sql/sql-root-key-store.ts";
import { tidyTables } from "../sql/tidy.ts";
import type { Store } from "../store.ts";
import { type BuildIndexOptions, buildIndex } from "./build-index.ts";
import { makeWindows } from "./exchange-statement.ts";
import { databaseNowMs, deleteIdleWritersText, nowText } from "./guarded-statement.ts";
import { applyMigration } from "./patient-connection.ts";
import { type MakeWindows, PermitLane } from "./permit-lane.ts";
import { deleteIdleReadersText, PgChangeFeed } from "./pg-change-feed.ts";
import { toPgStatement } from "./pg-connection.ts";
import { DatabaseRefused, orRefused } from "./pg-error.ts";
import { PgLookups } from "./pg-lookups.ts";
import { pgMigrations } from "./pg-migrations.ts";
import { PgPool, type PgPoolOptions, type QueryTimeouts } from "./pg-pool.ts";
import { PgServers } from "./pg-servers.ts";
import { checkUrl, lockTimeout } from "./pg-session.ts";
import { pgRefilledCounter } from "./refill-steps.ts";
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
    StoreStartOptions,
    Pick<Ambient, "clock" | "random" | "metrics"> {
  /** For each ledger. */
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
  const permitOptions = { ...laneOptions, makeWindows: makeWindowsWith(engine, options) };
  const permitLanes = Array.from({ length: options.lanes }, () => new PermitLane(permitOptions));
  const lanes = [...usageLanes, ...permitLanes];
  const changes = new PgChangeFeed({ ...options, servers });
  const close = async () => {
    changes.close();
    for (const lane of lanes) lane.close();
    await engine.close();
  };
  try {
    // Connects the lanes first, because the pool takes all the room that it finds.
    await Promise.all(lanes.map((lane) => lane.connect()));
    if (options.mustExist) await requireData(engine, "the database");
    const known = options.migrations ?? pgMigrations;
    const applied = await migrateUp(engine, options.clock.nowMs(), known, options.onUpgrade);
    if (isNewStore(applied)) options.onCreated?.();
    if ((await findUnfinishedCopy(engine)) !== undefined) throw new DatabaseRefused(unfinishedCopyText);
    // Prepares each lane's statements now: with connecting, that can take longer than the first uses may wait.
    await Promise.all([...usageLanes.map((lane) => lane.settle([])), ...permitLanes.map((lane) => lane.exchange([]))]);
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
    async tidy(nowMs, bounds) {
      await engine.atomically([sql.raw(deleteIdleWritersText), sql.raw(deleteIdleReadersText)]);
      await tidyTables(engine, nowMs, bounds);
    },
    close,
  };
}

function makeWindowsWith(engine: PgEngine, { ledgerClock }: Pick<PgEngineOptions, "ledgerClock">): MakeWindows {
  return async (asks) => {
    const windows = asks.map(({ subject, sentRule }) => ({ subject, duration_ms: sentRule?.durationMs }));
    await engine.atomically([makeWindows(ledgerClock?.nowMs(), windows)]);
  };
}

const unfinishedCopyText =
  "the database has an unfinished copy of an embedded store: run latchkey copy again, or empty the database";

/** It locks nothing, but only a server that accepts writes runs it; a read-only one fails with its own code. */
const checkText = "SELECT FROM usage_writers WHERE false FOR UPDATE";
const readTimeouts: QueryTimeouts = { waitMs: 1000, queryMs: 1000 };
/** Creating and deleting keys may take longer: they are not part of serving an API request. */
const writeTimeouts: QueryTimeouts = { waitMs: 2000, queryMs: 5000 };

/** For the transaction that it is part of. */
const setLockTimeout = (time: string) => sql`SELECT set_config('lock_timeout', ${sql.lit(time)}, true)`;

/** Verifications look keys up over the same connections: lists leave most of them free. */
const scansAtOnce = 2;
const scansWaitingMax = 100;

/** Connects at the first query. Throws `DatabaseRefused` if the URL itself cannot be used. */
export function openPgEngine(options: PgEngineOptions): PgEngine {
  checkUrl(options.url);
  const servers = new PgServers(options.url);
  const pool = new PgPool({ ...options, servers });
  const scanInTurn = limitConcurrency(scansAtOnce, scansWaitingMax);
  const { ledgerClock } = options;
  const nowMs = () => (ledgerClock ? sql`${ledgerClock.nowMs()}::bigint` : sql.raw(databaseNowMs));
  return {
    servers,
    pool,
    async read<Row>(query: Sql) {
      const { rows } = await pool.query(toPgStatement(query), readTimeouts);
      return rows as unknown as readonly Row[];
    },
    async atomically(queries) {
      const replies = await pool.transaction(queries.map(toPgStatement), writeTimeouts);
      return replies.map(({ rows, rowCount }) => ({ rows, changes: rowCount ?? 0 }));
    },
    async scan(query) {
      const { rows } = await scanInTurn(() => pool.query(toPgStatement(query), writeTimeouts));
      return rows;
    },
    migrate: (claim, statements) => applyMigration(servers, claim, statements),
    buildIndex: (index) => buildIndex(index, { ...options, servers }),
    tablesThere: sql`(SELECT relname AS name FROM pg_class WHERE relkind IN ('r', 'p') AND pg_table_is_visible(oid))`,
    inPrimaryKey: sql``,
    forKeyShare: sql`FOR KEY SHARE`,
    hasValue: (column, value) => sql`${sql.ref(column)} = ANY (ARRAY[${value}])`,
    isAnyOf: (column, query) => sql`${sql.ref(column)} = ANY (ARRAY(${query}))`,
    isListOf: (column, texts) => sql`${sql.ref(column)}::jsonb <@ ${JSON.stringify(texts)}::jsonb`,
    // The engine takes such a range for a ninth of the table, and would rather read all of it. It does not with a limit, which
    // no key reaches: it would have had as many names of limits.
    windowsOfKeys: (ids) => sql`SELECT own.subject FROM (${ids}) AS ids CROSS JOIN LATERAL (
      SELECT subject FROM permit_windows WHERE ${isWindowOfKey} ORDER BY subject LIMIT 10000) AS own`,
    forUpdate: sql`FOR UPDATE`,
    // Less than the time-out of a statement.
    inTurn: (statement) => [setLockTimeout("3s"), statement, setLockTimeout(lockTimeout)],
    thisTransaction: sql`pg_current_xact_id()::text::bigint`,
    oldestOpenTransaction: sql`pg_snapshot_xmin(pg_current_snapshot())::text::bigint`,
    refilledCounter: (subject) => pgRefilledCounter(subject, nowMs()),
    ledgerHour: () => sql`${nowMs()} / ${sql.lit(hourMs)}`,
    async ledgerNowMs() {
      if (ledgerClock !== undefined) return ledgerClock.nowMs();
      const { rows } = await pool.query({ text: nowText, values: [] }, writeTimeouts);
      return (rows[0] as { now_ms: number }).now_ms;
    },
    async check() {
      await pool.query({ text: checkText, values: [] }, readTimeouts);
    },
    close: () => pool.close(),
  };
}
