import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import pg from "pg";
import { describe, expect, it } from "vitest";
import { pgMigrations } from "../../src/store/postgres/pg-migrations.ts";
import { migrations } from "../../src/store/sql/migrations.ts";
import { type Engine, oneEngine, type StoreEnvironment } from "../support/engines.ts";
import { runLatchkey, startLatchkey } from "../support/latchkey-process.ts";
import { tempFolder } from "../support/temp-folder.ts";
import { createEmptyDatabase, hasPostgres } from "../support/test-database.ts";

const ports = { PORT: "0", LATCHKEY_INTERNAL_PORT: "0" };
const password = "p4ssw0rd-of-nobody";

function migrate(action: string, environment: StoreEnvironment) {
  return runLatchkey(["migrate", action], environment);
}

/** A store without tables. */
async function emptyStore(engine: Engine): Promise<StoreEnvironment> {
  const store = await engine.environment();
  return store.DATABASE_URL === undefined ? store : { ...store, DATABASE_URL: await createEmptyDatabase() };
}

/** Every migration of that store, each behind the same word, as `status` and `up` print them. */
function every(word: string, { DATABASE_URL }: StoreEnvironment): string {
  return (DATABASE_URL ? pgMigrations : migrations).map(({ name }) => `${word}${name}\n`).join("");
}

/** The message of a failed command. The test fails if the command succeeds, or prints a stack trace. */
async function refusalOf(args: readonly string[], environment: StoreEnvironment): Promise<string> {
  const { code, stdout, stderr } = await runLatchkey(args, { ...ports, ...environment });
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  expect(stderr).not.toMatch(/^\s+at /m);
  expect(stderr).not.toContain(password);
  const verb = args[0] === "serve" ? "start" : "migrate";
  expect(stderr).toMatch(new RegExp(`^latchkey cannot ${verb}:\\n {2}- .*\\n$`));
  return stderr;
}

async function execute(statement: string, { DATABASE_URL, LATCHKEY_DATA_DIR }: StoreEnvironment): Promise<void> {
  if (DATABASE_URL === undefined) {
    const file = new DatabaseSync(join(LATCHKEY_DATA_DIR, "latchkey.db"));
    file.exec(statement);
    file.close();
    return;
  }
  const client = new pg.Client(DATABASE_URL);
  await client.connect();
  await client.query(statement).finally(() => client.end());
}

describe.each(oneEngine)("latchkey migrate, on $name", (engine) => {
  it("lists what an empty store lacks, applies it, lists it as there, and has nothing left to apply", async () => {
    const store = await emptyStore(engine);
    const done = (stdout: string) => ({ code: 0, stdout, stderr: "" });

    expect(await migrate("status", store)).toEqual(done(every("lacks  ", store)));
    expect(await migrate("up", store)).toEqual(done(every("applied ", store)));
    expect(await migrate("status", store)).toEqual(done(every("has    ", store)));
    expect(await migrate("up", store)).toEqual(done("nothing to apply\n"));
  });

  it("finds nothing to apply where a service has started", async () => {
    const store = await emptyStore(engine);
    const latchkey = await startLatchkey({ ...store, LATCHKEY_DRAIN_MS: "0" });
    latchkey.kill("SIGTERM");
    expect(await latchkey.exited).toBe(0);
    expect(await migrate("up", store)).toMatchObject({ stdout: "nothing to apply\n" });
  });

  it("refuses a schema that is newer than itself, as serving does, and leaves it as it is", async () => {
    const store = await engine.environment();
    await migrate("up", store);
    await execute("INSERT INTO schema_migrations (name, applied_at_ms) VALUES ('9999-of-the-future', 0)", store);

    for (const args of [["migrate", "status"], ["migrate", "up"], ["serve"]]) {
      const refusal = await refusalOf(args, store);
      expect(refusal).toContain("the data was written by a newer version of Latchkey (it has 9999-of-the-future)");
    }
    await execute("DELETE FROM schema_migrations WHERE name = '9999-of-the-future'", store);
    expect(await migrate("up", store)).toMatchObject({ code: 0, stdout: "nothing to apply\n" });
  });
});

// Postgres only: the embedded store is a file and has no connections to refuse.
describe.runIf(hasPostgres)("latchkey migrate, where Postgres", () => {
  const faults: [string, (url: URL) => void, string][] = [
    ["does not know the database", (url) => (url.pathname = "/nowhere"), 'database "nowhere" does not exist'],
    ["does not know the user", (url) => (url.username = "nobody-known"), 'role "nobody-known" does not exist'],
    ["is away", (url) => (url.port = "1"), "the database did not answer: ECONNREFUSED"],
    ["has no address", (url) => (url.hostname = "db.invalid"), "the database did not answer: E"],
    ["has no TLS", (url) => (url.search = "?sslmode=verify-full"), "does not support SSL connections"],
    ["is to show a certificate that is not there", (url) => (url.search = "?sslrootcert=/no/ca.pem"), "/no/ca.pem"],
  ];

  it.each(faults)("%s, says so", async (_, spoil, says) => {
    const url = new URL(await createEmptyDatabase());
    url.password = password;
    spoil(url);
    const store = { LATCHKEY_DATA_DIR: tempFolder(), DATABASE_URL: url.href };

    const refusals = await Promise.all(["status", "up"].map((action) => refusalOf(["migrate", action], store)));
    for (const refusal of refusals) expect(refusal).toContain(says);
  });
});

describe("latchkey migrate", () => {
  it("does not touch a data folder that is being served", async () => {
    const store = { LATCHKEY_DATA_DIR: tempFolder() };
    await startLatchkey(store);

    for (const action of ["status", "up"]) {
      expect(await refusalOf(["migrate", action], store)).toContain("is in use by another process");
    }
  });

  it("answers an unknown command with its usage", async () => {
    const lines = ["migrate", "migrate down", "migrate up up"];
    for (const { code, stderr } of await Promise.all(lines.map((line) => runLatchkey(line.split(" "))))) {
      expect(code).toBe(2);
      expect(stderr).toContain("migrate takes status or up");
    }
  });
});
