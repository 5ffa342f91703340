import pg from "pg";
import { describe, expect, it, vi } from "vitest";
import { runLatchkey } from "../support/latchkey-process.ts";
import { PgBouncer } from "../support/pgbouncer.ts";
import type { PostgresServer } from "../support/postgres-server.ts";
import { query } from "../support/run-statement.ts";
import { startSilentAddress } from "../support/silent-address.ts";
import { StandbyPair } from "../support/standby-pair.ts";
import { createEmptyDatabase, hasPostgres } from "../support/test-database.ts";
import { atTestEnd } from "../support/test-end.ts";
import { createRedisDatabase } from "../support/test-redis.ts";
import { expectFound, healthyEnvironment, type PlantedFault, password, runDoctor } from "./run-doctor.ts";

/** A database with these statements run in it; `$name` is its name. */
async function changedDatabase(...statements: readonly string[]): Promise<{ DATABASE_URL: string }> {
  const url = await createEmptyDatabase();
  const name = new URL(url).pathname.slice(1);
  for (const statement of statements) await query(url, statement.replaceAll("$name", name));
  return { DATABASE_URL: url };
}

let template: Promise<string> | undefined;

/** The same, with the tables of this version. */
async function migratedDatabase(...statements: readonly string[]): Promise<{ DATABASE_URL: string }> {
  template ??= changedDatabase().then(async (database) => {
    expect(await runLatchkey(["migrate", "up"], database)).toMatchObject({ code: 0 });
    return new URL(database.DATABASE_URL).pathname.slice(1);
  });
  const DATABASE_URL = await createEmptyDatabase(`TEMPLATE ${await template}`);
  for (const statement of statements) await query(DATABASE_URL, statement);
  return { DATABASE_URL };
}

let roles = 0;

/** A role of its own on the shared server, which lets every user in. */
async function asRole(options: string, grant = "ALL"): Promise<{ DATABASE_URL: string; role: string }> {
  const role = `doctor_${process.pid}_${Date.now()}_${++roles}`;
  const { DATABASE_URL } = await changedDatabase(`CREATE ROLE ${role} LOGIN ${options}`);
  await query(DATABASE_URL, `GRANT ${grant} ON SCHEMA public TO ${role}`);
  const url = new URL(DATABASE_URL);
  url.username = role;
  url.password = password;
  return { DATABASE_URL: url.href, role };
}

async function throughPooler(
  mode: "session" | "transaction" | "statement",
  { DATABASE_URL }: { DATABASE_URL: string },
): Promise<{ DATABASE_URL: string }> {
  const pooler = await PgBouncer.start(DATABASE_URL, { mode });
  atTestEnd(() => pooler.remove());
  return { DATABASE_URL: pooler.through(DATABASE_URL) };
}

const faults: readonly PlantedFault[] = [
  {
    fault: "an address where nothing listens",
    plant: () => ({ DATABASE_URL: `postgres://latchkey:${password}@127.0.0.1:1/latchkey` }),
    ...{ id: "postgres-unreachable", fix: 'psql "postgres://latchkey@127.0.0.1:1/latchkey"', code: 1 },
  },
  {
    fault: "an address that is silent",
    plant: async () => ({
      DATABASE_URL: `postgres://latchkey@127.0.0.1:${(await startSilentAddress()).port}/latchkey`,
    }),
    ...{ id: "postgres-unreachable", fix: /firewall/, code: 1 },
  },
  {
    fault: "a database that does not exist",
    async plant() {
      const url = new URL((await changedDatabase()).DATABASE_URL);
      url.pathname = "/nowhere";
      return { DATABASE_URL: url.href };
    },
    ...{ id: "postgres-refused", fix: /CREATE DATABASE/, code: 1 },
  },
  {
    fault: "commits that are not waited for",
    plant: () => changedDatabase("ALTER DATABASE $name SET synchronous_commit = off"),
    ...{ id: "postgres-synchronous-commit-off", fix: "ALTER SYSTEM SET synchronous_commit = on;", code: 3 },
  },
  {
    fault: "a database that takes no writes",
    plant: () => changedDatabase("ALTER DATABASE $name SET default_transaction_read_only = on"),
    ...{ id: "postgres-read-only", fix: "default_transaction_read_only = off", code: 1 },
  },
  {
    fault: "a clock that is an hour ahead",
    plant: () =>
      changedDatabase(
        "CREATE SCHEMA ahead",
        `CREATE FUNCTION ahead.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS
          'SELECT pg_catalog.clock_timestamp() + interval ''1 hour'''`,
        "ALTER DATABASE $name SET search_path = ahead, pg_catalog",
      ),
    ...{ id: "postgres-clock", fix: /chronyc/, code: 3 },
  },
  {
    fault: "a role that may not make tables",
    plant: () => asRole("", "USAGE"),
    ...{ id: "postgres-privileges", fix: /^GRANT CREATE, USAGE ON SCHEMA public TO doctor_/, code: 1 },
  },
  {
    fault: "a role that may not read the tables",
    async plant() {
      const { DATABASE_URL } = await migratedDatabase();
      const { role } = await asRole("");
      await query(DATABASE_URL, `GRANT ALL ON SCHEMA public TO ${role}`);
      const url = new URL(DATABASE_URL);
      url.username = role;
      return { DATABASE_URL: url.href };
    },
    ...{ id: "postgres-privileges", fix: /^GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES/, code: 1 },
  },
  {
    fault: "too few connections",
    plant: () => asRole("CONNECTION LIMIT 8"),
    ...{ id: "postgres-connections-few", fix: /LATCHKEY_DATABASE_CONNECTIONS_MAX=3$/, code: 3 },
  },
  {
    fault: "connections that are all taken",
    async plant() {
      const { DATABASE_URL } = await asRole("CONNECTION LIMIT 1");
      const client = new pg.Client(DATABASE_URL);
      await client.connect();
      atTestEnd(() => client.end());
      return { DATABASE_URL };
    },
    ...{ id: "postgres-connections-exhausted", fix: /max_connections = 200/, code: 1 },
  },
  {
    fault: "a schema of a newer version",
    plant: () =>
      migratedDatabase("INSERT INTO schema_migrations (name, applied_at_ms) VALUES ('9999-of-the-future', 0)"),
    ...{ id: "schema-too-new", fix: /^Install the version/, code: 1 },
  },
  {
    fault: "a copy that is not finished",
    plant: () => migratedDatabase("INSERT INTO unfinished_copy (slot, id) VALUES (1, 'copy')"),
    ...{ id: "copy-unfinished", fix: /^latchkey copy/, code: 1 },
  },
  {
    fault: "an empty database where there has to be data",
    plant: async () => ({ ...(await changedDatabase()), LATCHKEY_STORE: "existing" }),
    ...{ id: "store-empty", fix: "LATCHKEY_STORE=create", code: 1 },
  },
  {
    fault: "tables without rows where there has to be data",
    plant: async () => ({ ...(await migratedDatabase()), LATCHKEY_STORE: "existing" }),
    ...{ id: "store-empty", fix: "LATCHKEY_STORE=create", code: 1 },
  },
  {
    fault: "a data folder that cannot be made",
    plant: async () => ({ ...(await changedDatabase()), LATCHKEY_DATA_DIR: "/dev/null/data" }),
    ...{ id: "data-folder-unwritable", fix: "LATCHKEY_DATA_DIR", code: 3 },
  },
  {
    fault: "a pooler by session",
    plant: async () => throughPooler("session", await changedDatabase()),
    ...{ id: "postgres-pooler", fix: /default_pool_size of at least 15/, code: 0 },
  },
  {
    fault: "a pooler by transaction",
    plant: async () => throughPooler("transaction", await changedDatabase()),
    ...{ id: "postgres-pooler", fix: /server_login_retry/, code: 0 },
  },
  {
    fault: "a pooler by statement",
    plant: async () => throughPooler("statement", await changedDatabase()),
    ...{ id: "postgres-refused", fix: /pgbouncer\.ini/, code: 1 },
  },
];

describe.runIf(hasPostgres).concurrent("latchkey doctor, of Postgres", () => {
  it("finds nothing with Postgres and Redis, before the first start and after a migration, and changes nothing", async () => {
    const database = await changedDatabase();
    const environment = {
      ...healthyEnvironment(),
      ...database,
      REDIS_URL: await createRedisDatabase(),
      LATCHKEY_ROLE: "all",
    };
    const first = await runDoctor(environment);
    expect(first).toMatchObject({ ids: [], code: 0 });
    expect(first.checked.map(({ text }) => text).join("\n")).toContain("no tables yet");
    const { rows } = await query(database.DATABASE_URL, "SELECT * FROM pg_tables WHERE schemaname = 'public'");
    expect(rows).toEqual([]);

    const second = await runDoctor({ ...environment, ...(await migratedDatabase()) });
    expect(second).toMatchObject({ ids: [], code: 0 });
    expect(second.checked.map(({ text }) => text).join("\n")).toContain("the schema is this version's");
  });

  it.each(faults)("finds $fault, names the fix, and finds nothing else", expectFound);

  it("finds another isolation behind a pooler by transaction", async () => {
    const serializable = "ALTER DATABASE $name SET default_transaction_isolation = serializable";
    const pooled = await throughPooler("transaction", await changedDatabase(serializable));
    const answer = await runDoctor({ ...healthyEnvironment(), ...pooled });
    expect(answer).toMatchObject({ ids: ["postgres-pooler", "postgres-isolation"], code: 1 });
  });

  it("finds a standby, uses the primary of both, a wrong password, a standby that is away, and unsafe settings", async () => {
    const { primary, standby } = await StandbyPair.start("asynchronous");
    const check = (DATABASE_URL: string) => runDoctor({ ...healthyEnvironment(), DATABASE_URL });
    const both = `postgres://latchkey@127.0.0.1:${standby.port},127.0.0.1:${primary.port}/postgres`;
    const [alone, together] = await Promise.all([check(standby.url()), check(both)]);
    expect(alone).toMatchObject({ ids: ["postgres-read-only"], code: 1 });
    expect(alone.findings[0]?.fix).toContain("SELECT pg_promote();");
    expect(together).toMatchObject({ ids: [], code: 0 });

    await askForPasswords(primary, "asked", "password");
    const asked = (word: string) => primary.url().replace("latchkey@", `asked:${word}@`);
    const [wrong, right] = await Promise.all([check(asked(password)), check(asked("password"))]);
    expect(wrong).toMatchObject({ ids: ["postgres-refused"], code: 1 });
    expect(wrong.findings[0]).toMatchObject({
      problem: expect.stringContaining('password authentication failed for user "asked"'),
      fix: expect.stringContaining("Correct the password in DATABASE_URL"),
    });
    expect(right).toMatchObject({ ids: [], code: 0 });

    await primary.query("ALTER SYSTEM SET synchronous_standby_names = 'another'");
    primary.reload();
    const waits = "SHOW synchronous_standby_names";
    await vi.waitFor(async () =>
      expect((await primary.query(waits)).rows[0]?.synchronous_standby_names).toBe("another"),
    );
    const waiting = await check(primary.url());
    expect(waiting).toMatchObject({ ids: ["postgres-standby-away"], code: 1 });
    expect(waiting.findings[0]?.fix).toContain("ALTER SYSTEM SET synchronous_standby_names = ''");
    await primary.query("ALTER SYSTEM SET synchronous_standby_names = 'standby1'");

    await primary.query("ALTER SYSTEM SET synchronous_commit = local");
    await primary.query("ALTER SYSTEM SET full_page_writes = off");
    await primary.query("ALTER SYSTEM SET fsync = off");
    primary.reload();
    await vi.waitFor(async () => expect((await primary.query("SHOW fsync")).rows).toEqual([{ fsync: "off" }]));
    const unsafe = await check(primary.url());
    const withoutDisk = "postgres-commits-unsafe";
    expect(unsafe).toMatchObject({ ids: [withoutDisk, withoutDisk, "postgres-synchronous-commit-off"], code: 1 });
    expect(unsafe.findings[0]?.fix).toContain("ALTER SYSTEM SET fsync = on;");
    expect(unsafe.findings[2]?.problem).toMatch(/^synchronous_commit = local at /);

    await primary.kill();
    const lost = await check(both);
    expect(lost).toMatchObject({ ids: ["postgres-unreachable"], code: 1 });
    expect(lost.findings[0]?.problem).toContain("no server is the primary: a standby, ECONNREFUSED");
  });
});

/** Makes a role that the server asks for its password. The others are trusted as before. */
async function askForPasswords(server: PostgresServer, role: string, word: string): Promise<void> {
  await server.query(`CREATE ROLE ${role} LOGIN PASSWORD '${word}'`);
  await server.query(`GRANT ALL ON SCHEMA public TO ${role}`);
  const { rows } = await server.query("SHOW hba_file");
  const lines = [`host all ${role}`, "host all all", "host replication all"].map(
    (line) => `('${line} 127.0.0.1/32 ${line.endsWith(role) ? "scram-sha-256" : "trust"}')`,
  );
  await server.query(`COPY (VALUES ${lines.join()}) TO '${rows[0].hba_file}'`);
  server.reload();
  const rules = "SELECT count(*)::integer AS rules FROM pg_hba_file_rules WHERE auth_method = 'scram-sha-256'";
  await vi.waitFor(async () => expect((await server.query(rules)).rows).toEqual([{ rules: 1 }]));
}
