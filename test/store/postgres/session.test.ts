import { CompiledQuery, sql } from "kysely";
import pg from "pg";
import { describe, expect, it, onTestFinished } from "vitest";
import { openPgEngine } from "../../../src/store/postgres/open-postgres-store.ts";
import { PgConnection } from "../../../src/store/postgres/pg-connection.ts";
import { createTestDatabase, hasPostgres } from "../../support/test-database.ts";

/** What somebody may have set for everybody, each against what an acknowledged use asks for. */
const careless = {
  synchronous_commit: "off",
  default_transaction_isolation: "serializable",
  plan_cache_mode: "force_custom_plan",
  lock_timeout: "0",
  statement_timeout: "0",
};
const ours = {
  synchronous_commit: "on",
  default_transaction_isolation: "read committed",
  plan_cache_mode: "force_generic_plan",
  lock_timeout: "400ms",
  statement_timeout: "5s",
};
const columns = Object.keys(ours).map((name) => `current_setting('${name}') AS ${name}`);
const question = `SELECT ${columns.join(", ")}`;

/** A database whose sessions are careless unless they say otherwise. */
async function carelessDatabase(): Promise<string> {
  const url = await createTestDatabase();
  const client = new pg.Client(url);
  await client.connect();
  for (const [name, value] of Object.entries(careless)) {
    await client.query(`ALTER DATABASE ${new URL(url).pathname.slice(1)} SET ${name} = '${value}'`);
  }
  await client.end();
  return url;
}

describe.runIf(hasPostgres)("on a server with careless defaults", () => {
  it("a session of somebody else's is careless: there is something to force", async () => {
    const client = new pg.Client(await carelessDatabase());
    await client.connect();
    onTestFinished(() => client.end());
    expect((await client.query(question)).rows).toEqual([careless]);
  });

  it("every session of the pool has our settings, from its first statement on", async () => {
    const engine = openPgEngine({ url: await carelessDatabase(), connectionsMax: 4 });
    onTestFinished(() => engine.close());
    const pid = "pg_sleep(0.1) IS NOT NULL AS slept, pg_backend_pid() AS pid";
    const answers = await Promise.all(
      Array.from({ length: 4 }, () => sql.raw(`${question}, ${pid}`).execute(engine.db)),
    );
    const rows = answers.map((answer) => answer.rows[0] as { pid: number });
    expect(new Set(rows.map((row) => row.pid)).size).toBe(4);
    for (const row of rows) expect(row).toMatchObject(ours);
  });

  it("a transaction of the pool is read committed", async () => {
    const engine = openPgEngine({ url: await carelessDatabase(), connectionsMax: 1 });
    onTestFinished(() => engine.close());
    const [shown] = await engine.atomically([CompiledQuery.raw("SHOW transaction_isolation")]);
    expect(shown?.rows).toEqual([{ transaction_isolation: "read committed" }]);
  });

  it("a lane's session has our settings, after a lost connection too", async () => {
    const connection = new PgConnection(await carelessDatabase());
    onTestFinished(() => connection.close());
    const ask = () => connection.run({ name: "ask", text: question, values: [] }, 2000);
    expect((await ask()).rows).toEqual([ours]);
    connection.discard();
    expect((await ask()).rows).toEqual([ours]);
  });
});
