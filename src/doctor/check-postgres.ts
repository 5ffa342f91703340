import { systemClock } from "../ambient/clock.ts";
import type { Settings } from "../config/settings.ts";
import { printablePostgresUrl } from "../domain/postgres-url.ts";
import type { Secret } from "../domain/secret.ts";
import { reasonOf } from "../server/database-watch.ts";
import { type DatabaseFacts, inspectDatabase } from "../store/postgres/inspect-database.ts";
import { DatabaseRefused, isNoRoom, orRefused, sqlStateOf, toStoreError } from "../store/postgres/pg-error.ts";
import { pgMigrations } from "../store/postgres/pg-migrations.ts";
import { reportEmptyStore, reportReadings, reportSchema } from "./report-schema.ts";
import type { Report } from "./run-checks.ts";

export type PostgresSettings = Pick<Settings, "databaseConnectionsMax" | "usageLanes" | "storeMustExist"> & {
  /** Whether this process has nowhere to exchange local windows with others. */
  readonly countsAlone: boolean;
};

/** The database that DATABASE_URL names: whether it can be used, and whether it keeps what it acknowledges. */
export async function checkPostgres(databaseUrl: Secret, settings: PostgresSettings, report: Report): Promise<void> {
  const url = databaseUrl.reveal();
  const address = printablePostgresUrl(url);
  try {
    reportDatabase(address, await inspectDatabase(url), settings, report);
  } catch (error) {
    reportFailure(address, error, settings, report);
  }
}

function reportFailure(url: string, error: unknown, settings: PostgresSettings, { found }: Report): void {
  const store = toStoreError(error);
  const refused = orRefused(error);
  if (isNoRoom(error)) {
    const wanted = connectionsOf(settings);
    const fix = `ALTER SYSTEM SET max_connections = 200; and restart Postgres (this service wants ${wanted}), or close idle clients: SELECT usename, application_name, count(*) FROM pg_stat_activity GROUP BY 1, 2;`;
    found("postgres-connections-exhausted", `${url} has no room for a connection: ${reasonOf(store)}`, fix);
  } else if (refused instanceof DatabaseRefused) {
    found("postgres-refused", `${url}: ${refused.message}`, refusalFix(error));
  } else {
    const fix = `psql "${url}" -c "SELECT 1" from this machine; if that fails too, start Postgres, or correct the address in DATABASE_URL or the firewall.`;
    found("postgres-unreachable", `${url} does not answer: ${reasonOf(store)}`, fix);
  }
}

/** By what the server has said. */
function refusalFix(error: unknown): string {
  const state = sqlStateOf(error) ?? "";
  if (state === "28P01") return "Correct the password in DATABASE_URL, or set it: ALTER ROLE name PASSWORD 'password';";
  if (state.startsWith("28"))
    return "Correct the user in DATABASE_URL, or let it in: CREATE ROLE name LOGIN PASSWORD 'password'; and a line in pg_hba.conf.";
  if (state === "3D000") return "Correct the database in DATABASE_URL, or make it: CREATE DATABASE name OWNER role;";
  if (state === "42501") return "GRANT CONNECT ON DATABASE name TO role;";
  if (state === "08P01") return "Change pgbouncer.ini as it says, then: psql -p 6432 pgbouncer -c RELOAD";
  return "Correct DATABASE_URL as it says; sslmode=verify-full and sslrootcert=/path/ca.pem decide what is trusted.";
}

/** As docs/operations.md#sizing counts them: look-ups and changes, both ledgers, the change feed. */
function connectionsOf({ databaseConnectionsMax, usageLanes }: PostgresSettings): number {
  return databaseConnectionsMax + 2 * usageLanes + 1;
}

const versionMin = 130_000;
const clockToleranceMs = 2000;

/** What the facts mean. Pure. */
export function reportDatabase(url: string, facts: DatabaseFacts, settings: PostgresSettings, report: Report): void {
  const { checked, found } = report;
  checked(`Postgres ${facts.version} at ${url}, ${Math.round(facts.roundTripMs)} ms away`);
  if (facts.versionNumber < versionMin)
    found(
      "postgres-version",
      `${url} is Postgres ${facts.version}`,
      "Upgrade it to Postgres 15 or newer (pg_upgrade).",
    );
  if (facts.isStandby) {
    const fix =
      "Name the primary in DATABASE_URL, or both (host:5432,host:5432): the primary is used. To make this one the primary: SELECT pg_promote();";
    found("postgres-read-only", `${url} is a standby`, fix);
  } else if (facts.isReadOnly) {
    const fix = `ALTER ROLE ${facts.role} SET default_transaction_read_only = off; and the same of the database and the server.`;
    found("postgres-read-only", `${url} takes no writes: default_transaction_read_only is on`, fix);
  }
  if (facts.isStandbyAway) {
    const fix =
      "Start the standby, or its line. If it was not promoted and nothing will promote it: ALTER SYSTEM SET synchronous_standby_names = ''; SELECT pg_reload_conf();";
    found("postgres-standby-away", `no synchronous standby of ${url} is connected`, fix);
  }
  reportCommits(url, facts.unsafeSettings, report);
  reportPooler(url, facts, settings, report);
  const apartMs = Math.abs(facts.clockAheadMs) - facts.roundTripMs / 2;
  if (apartMs > clockToleranceMs) {
    const direction = facts.clockAheadMs > 0 ? "ahead of" : "behind";
    found(
      "postgres-clock",
      `the clock of ${url} is ${(Math.abs(facts.clockAheadMs) / 1000).toFixed(1)} s ${direction} this machine's`,
      "timedatectl on both machines; then chronyc makestep on the wrong one, while nothing is counted.",
    );
  }
  reportReadings(facts.meteredHour, systemClock.nowMs() + facts.clockAheadMs, report);
  reportTables(url, facts, settings, report);
  if (settings.countsAlone && facts.replicas > 1 && facts.hasLocalLimits) {
    const fix =
      'Set REDIS_URL to the same Redis on every replica, or serve by edges with a coordinator; or make limits strict ("async": false): docs/rate-limits.md.';
    report.found("local-limits-apart", `${facts.replicas} replicas use ${url}, and there are local limits`, fix);
  }
}

function reportCommits(url: string, unsafe: readonly string[], { found }: Report): void {
  for (const setting of unsafe) {
    const [name = ""] = setting.split(" ");
    const id = name === "synchronous_commit" ? "postgres-synchronous-commit-off" : "postgres-commits-unsafe";
    const fix = `ALTER SYSTEM SET ${name} = on; SELECT pg_reload_conf(); and look for ALTER ROLE or ALTER DATABASE … SET ${name}.`;
    found(id, `${setting} at ${url}`, fix);
  }
}

function reportPooler(url: string, facts: DatabaseFacts, settings: PostgresSettings, { found, checked }: Report): void {
  const wanted = connectionsOf(settings);
  const { pooler, connectionsFree, isolation, role } = facts;
  if (pooler === undefined) {
    checked(`${connectionsFree} connections free or its own, of which this service takes up to ${wanted}`);
    if (connectionsFree >= wanted) return;
    const less = Math.max(1, connectionsFree - (wanted - settings.databaseConnectionsMax));
    const fix = `ALTER SYSTEM SET max_connections = 200; and restart Postgres, or ALTER ROLE ${role} CONNECTION LIMIT -1;, or set LATCHKEY_DATABASE_CONNECTIONS_MAX=${less}`;
    found("postgres-connections-few", `${url} has ${connectionsFree} connections free, of ${wanted} wanted`, fix);
    return;
  }
  const size = `default_pool_size of at least ${wanted} for each replica`;
  const fix = `Connect directly, by the address of Postgres itself in DATABASE_URL; or keep a ${pooler === "session" ? size : "server_login_retry of 1"}: docs/operations.md#poolers.`;
  found("postgres-pooler", `${url} is a pooler, by ${pooler}`, fix);
  if (pooler === "transaction" && isolation !== "read committed") {
    const setIsolation = `ALTER ROLE ${role} SET default_transaction_isolation = 'read committed';`;
    found("postgres-isolation", `transactions of ${role} are ${isolation} by default`, setIsolation);
  }
}

function reportTables(url: string, facts: DatabaseFacts, settings: PostgresSettings, report: Report): void {
  const { schema, role, applied, forbiddenTables } = facts;
  if (schema === null) {
    const fix = `CREATE SCHEMA AUTHORIZATION ${role}; or ALTER ROLE ${role} SET search_path = public;`;
    report.found("postgres-privileges", `${role} has no schema to make tables in at ${url}`, fix);
    return;
  }
  if (!facts.canCreateTables) {
    const fix = `GRANT CREATE, USAGE ON SCHEMA ${schema} TO ${role};`;
    report.found("postgres-privileges", `${role} may not make tables in the schema ${schema} of ${url}`, fix);
  }
  if (forbiddenTables.length > 0) {
    const fix = `GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ${schema} TO ${role}; as the tables' owner`;
    report.found("postgres-privileges", `${role} may not read or change ${forbiddenTables.join(", ")}`, fix);
  } else if (settings.storeMustExist && facts.isEmpty && !facts.hasUnfinishedCopy) {
    reportEmptyStore("the database", report);
  } else if (applied === undefined) {
    report.checked("no tables yet: the first start makes them");
  } else if (facts.hasUnfinishedCopy) {
    const fix = "latchkey copy again with the same settings, or empty the database.";
    report.found("copy-unfinished", `${url} has an unfinished copy of an embedded store`, fix);
  } else {
    reportSchema(applied, pgMigrations, report);
  }
}
