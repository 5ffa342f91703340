import pg from "pg";
import { systemClock } from "../../ambient/clock.ts";
import { findDataText, tableNames } from "../sql/copied-tables.ts";
import { meteredHourText } from "../sql/readings.ts";
import { databaseNowMs } from "./guarded-statement.ts";
import { PgServers } from "./pg-servers.ts";
import { checkUrl, clientConfig } from "./pg-session.ts";
import { PgSocket } from "./pg-socket.ts";

/** What a database says of itself. */
export interface DatabaseFacts {
  readonly version: string;
  /** For example 150004. */
  readonly versionNumber: number;
  readonly isStandby: boolean;
  readonly isReadOnly: boolean;
  /** Commits wait for a synchronous standby, and none is connected. False too where this role may not know. */
  readonly isStandbyAway: boolean;
  /** The settings that commits depend on and that are not safe: `fsync = off`. */
  readonly unsafeSettings: readonly string[];
  readonly isolation: string;
  readonly roundTripMs: number;
  /** How far the database's clock is ahead of this machine's; exact to half a round trip. */
  readonly clockAheadMs: number;
  /** What is between us and the server, and how it pools. */
  readonly pooler: "session" | "transaction" | undefined;
  /** Connections that this role may still open, with those that Latchkey has open from this machine. */
  readonly connectionsFree: number;
  /** Where tables are made and found; null: nowhere. */
  readonly schema: string | null;
  readonly role: string;
  readonly canCreateTables: boolean;
  /** Tables of ours that this role may not read or change. */
  readonly forbiddenTables: readonly string[];
  /** Names of migrations; undefined in a database that no Latchkey has used yet, or where they may not be read. */
  readonly applied: readonly string[] | undefined;
  readonly hasUnfinishedCopy: boolean;
  /** Processes that read the change feed: replicas with a store, and coordinators. */
  readonly replicas: number;
  /** Whether one of the first keys or owners has a limit that each replica counts by itself. */
  readonly hasLocalLimits: boolean;
  /** Whether there is no data, as `requireData` has it. */
  readonly isEmpty: boolean;
  /** The latest hour that the meter of a counter has reached. Undefined: there is none. */
  readonly meteredHour: number | undefined;
}

const statementMs = 3000;
/** Not Latchkey's own name: its connections are counted. */
const applicationName = "latchkey-doctor";

/** Reads only, and holds no lock. Throws the error of the server or the connection, and `DatabaseRefused` for the URL itself. */
export async function inspectDatabase(url: string): Promise<DatabaseFacts> {
  checkUrl(url);
  const server = await new PgServers(url).locate();
  return withClient(server, async (client) => {
    // As a transaction: a pooler that carries none refuses here.
    await client.query("BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY");
    const facts = await readFacts(client);
    await client.query("COMMIT");
    return { ...facts, pooler: await findPooler(server, client, facts.backendPid) };
  });
}

async function withClient<Result>(url: string, use: (client: pg.Client) => Promise<Result>): Promise<Result> {
  const socket = new PgSocket();
  const config = { ...clientConfig(url), application_name: applicationName, query_timeout: statementMs };
  const client = new pg.Client({ ...config, stream: () => socket });
  // Without a listener its loss would end the process.
  client.on("error", () => {});
  try {
    await client.connect();
    socket.onReady();
    const result = await use(client);
    await client.end();
    return result;
  } catch (error) {
    socket.abandon();
    throw error;
  }
}

async function readFacts(client: pg.Client): Promise<Omit<DatabaseFacts, "pooler"> & { backendPid: number }> {
  const sentMs = systemClock.monotonicMs();
  const sentAtMs = systemClock.nowMs();
  const { now_ms } = await one(client, `SELECT ${databaseNowMs} AS now_ms`);
  const roundTripMs = systemClock.monotonicMs() - sentMs;
  const state = await one(client, stateText);
  const { free } = await one(client, connectionsText);
  const tables = await client.query<{ name: string; is_allowed: boolean }>(tablesText, [
    [...tableNames, "usage_writers", "change_readers"],
  ]);
  const readable = new Set(tables.rows.filter(({ is_allowed }) => is_allowed).map(({ name }) => name));
  const read = async (table: string, column: string) =>
    readable.has(table) ? (await client.query(`SELECT ${column} AS value FROM ${table}`)).rows : undefined;
  return {
    ...(state as unknown as Omit<DatabaseFacts, "pooler"> & { backendPid: number }),
    roundTripMs,
    clockAheadMs: Number(now_ms) - (sentAtMs + roundTripMs / 2),
    connectionsFree: Number(free),
    forbiddenTables: tables.rows.filter(({ is_allowed }) => !is_allowed).map(({ name }) => name),
    applied: (await read("schema_migrations", "name"))?.map(({ value }) => String(value)),
    hasUnfinishedCopy: ((await read("unfinished_copy", "id")) ?? []).length > 0,
    // A table of before it has counters without meters.
    meteredHour: readable.has("readings") ? Number((await one(client, meteredHourText)).hour ?? 0) : undefined,
    isEmpty: (await client.query(findDataText([...readable]))).rows.length === 0,
    replicas: readable.has("change_readers") ? Number((await one(client, replicasText)).replicas) : 0,
    hasLocalLimits:
      readable.has("keys") && readable.has("owners") && (await one(client, localLimitsText)).found === true,
  };
}

async function one(client: pg.Client, text: string): Promise<Record<string, unknown>> {
  const { rows } = await client.query(text);
  return rows[0] as Record<string, unknown>;
}

const stateText = `
SELECT current_setting('server_version') AS version,
  current_setting('server_version_num')::integer AS "versionNumber",
  pg_is_in_recovery() AS "isStandby",
  current_setting('default_transaction_read_only')::boolean AS "isReadOnly",
  current_setting('synchronous_standby_names') <> '' AND NOT pg_is_in_recovery() AND NOT EXISTS (
    SELECT FROM pg_stat_replication WHERE sync_state IS NULL OR sync_state IN ('sync', 'quorum')
  ) AS "isStandbyAway",
  array_remove(ARRAY[
    CASE WHEN current_setting('fsync') = 'off' THEN 'fsync = off' END,
    CASE WHEN current_setting('full_page_writes') = 'off' THEN 'full_page_writes = off' END,
    CASE WHEN current_setting('synchronous_commit') = 'off' OR current_setting('synchronous_standby_names') <> ''
      AND current_setting('synchronous_commit') IN ('local', 'remote_write')
      THEN 'synchronous_commit = ' || current_setting('synchronous_commit') END
  ], NULL) AS "unsafeSettings",
  current_setting('default_transaction_isolation') AS isolation,
  current_schema() AS schema,
  current_user AS role,
  COALESCE(has_schema_privilege(current_schema(), 'CREATE'), false) AS "canCreateTables",
  pg_backend_pid() AS "backendPid"`;

/**
 * The scarcest of server, role and database. Of other roles' connections one can see that they are there. A name in
 * DATABASE_URL counts instead of ours, for the service's connections and for this one.
 */
const connectionsText = `
WITH service AS (
  SELECT CASE current_setting('application_name') WHEN '${applicationName}' THEN 'latchkey'
    ELSE current_setting('application_name') END AS name
), open AS (
  SELECT activity.* FROM pg_stat_activity activity, service WHERE datid IS NOT NULL
    AND pid <> pg_backend_pid() AND application_name <> '${applicationName}'
    AND NOT (application_name = service.name AND usename = current_user AND client_addr IS NOT DISTINCT FROM inet_client_addr())
), role AS (
  SELECT rolconnlimit, rolsuper FROM pg_roles WHERE rolname = current_user
), reserved AS (
  SELECT CASE WHEN rolsuper THEN 0 ELSE current_setting('superuser_reserved_connections')::integer
    + COALESCE(current_setting('reserved_connections', true)::integer, 0) END AS number FROM role
)
SELECT LEAST(
  current_setting('max_connections')::integer - (SELECT number FROM reserved) - (SELECT count(*) FROM open),
  (SELECT CASE WHEN rolconnlimit >= 0 AND NOT rolsuper
    THEN rolconnlimit - (SELECT count(*) FROM open WHERE usename = current_user) END FROM role),
  (SELECT CASE WHEN datconnlimit >= 0 AND NOT (SELECT rolsuper FROM role)
    THEN datconnlimit - (SELECT count(*) FROM open WHERE datname = current_database()) END
    FROM pg_database WHERE datname = current_database())
) AS free`;

/** A process that runs writes a heartbeat twice a second. */
const replicasText =
  "SELECT count(*) AS replicas FROM change_readers WHERE updated_at > clock_timestamp() - interval '3 s'";

/** Only so many rows are read: no index leads to limits. */
const localLimitsText = `
SELECT EXISTS (SELECT FROM (SELECT ratelimit_async, ratelimits FROM keys LIMIT 10000) AS k
    WHERE ratelimit_async = 1 OR ratelimits LIKE '%"mode":"local"%')
  OR EXISTS (SELECT FROM (SELECT ratelimits FROM owners LIMIT 10000) AS o WHERE ratelimits LIKE '%"mode":"local"%') AS found`;

/** $1 the tables of ours; those that are not there yet are left out. */
const tablesText = `
SELECT c.relname AS name, has_table_privilege(c.oid, 'SELECT') AND has_table_privilege(c.oid, 'INSERT')
  AND has_table_privilege(c.oid, 'UPDATE') AND has_table_privilege(c.oid, 'DELETE') AS is_allowed
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = current_schema() AND c.relkind IN ('r', 'p') AND c.relname = ANY ($1::text[]) ORDER BY c.relname`;

const poolerRounds = 4;

/**
 * A pooler gives its clients process ids of its own, which are not those of the server. One that pools by session gives
 * two clients that are connected at the same time two connections of the server; one that pools by transaction lets them share.
 */
async function findPooler(server: string, client: pg.Client, backendPid: number): Promise<DatabaseFacts["pooler"]> {
  if ((client as unknown as { processID: number | null }).processID === backendPid) return undefined;
  return withClient(server, async (other) => {
    for (let round = 0; round < poolerRounds; round++) {
      const pids = [await one(client, pidText), await one(other, pidText)].map(({ pid }) => pid);
      if (pids[0] === pids[1]) return "transaction";
    }
    return "session";
  });
}

const pidText = "SELECT pg_backend_pid() AS pid";
