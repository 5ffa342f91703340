import pg from "pg";
import { describe, expect, it, onTestFinished } from "vitest";
import { openPgEngine } from "../../../src/store/postgres/open-postgres-store.ts";
import { PgConnection, preparedText } from "../../../src/store/postgres/pg-connection.ts";
import { PgServers } from "../../../src/store/postgres/pg-servers.ts";
import { sql } from "../../../src/store/sql/sql.ts";
import { openLane } from "../../faults/postgres/lane-fixture.ts";
import { logCommits, loggedCommits } from "../../support/commit-log.ts";
import { deadlineIn } from "../../support/deadline-in.ts";
import { openTestStore } from "../../support/open-test-store.ts";
import { createEmptyDatabase, hasPostgres } from "../../support/test-database.ts";

/** Settings that an administrator may have made for all sessions, each unsafe for an acknowledged use. */
const careless = {
  synchronous_commit: "off",
  default_transaction_isolation: "serializable",
  plan_cache_mode: "force_custom_plan",
  lock_timeout: "0",
  statement_timeout: "0",
};
/** Settings that help but are not relied on. Every session sets them when it begins. */
const helpful = {
  default_transaction_isolation: "read committed",
  plan_cache_mode: "force_generic_plan",
  lock_timeout: "400ms",
  statement_timeout: "5s",
};
const questionAbout = (names: readonly string[]) =>
  `SELECT ${names.map((name) => `current_setting('${name}') AS ${name}`).join(", ")}`;

/** A database whose sessions are careless unless they say otherwise. */
async function carelessDatabase(): Promise<string> {
  const url = await createEmptyDatabase();
  const client = new pg.Client(url);
  await client.connect();
  for (const [name, value] of Object.entries(careless)) {
    await client.query(`ALTER DATABASE ${new URL(url).pathname.slice(1)} SET ${name} = '${value}'`);
  }
  await client.end();
  return url;
}

describe.runIf(hasPostgres)("on a server with careless defaults", () => {
  it("a session that is not ours is careless: there is something to set", async () => {
    const client = new pg.Client(await carelessDatabase());
    await client.connect();
    onTestFinished(() => client.end());
    expect((await client.query(questionAbout(Object.keys(careless)))).rows).toEqual([careless]);
  });

  it("every transaction of the pool sets what it relies on, a single change too", async () => {
    const engine = openPgEngine({ url: await carelessDatabase(), connectionsMax: 2 });
    onTestFinished(() => engine.close());
    const question = questionAbout([
      "synchronous_commit",
      "transaction_isolation",
      "lock_timeout",
      "statement_timeout",
      "idle_in_transaction_session_timeout",
    ]);
    const ours = {
      synchronous_commit: "on",
      transaction_isolation: "read committed",
      lock_timeout: "400ms",
      statement_timeout: "5s",
      idle_in_transaction_session_timeout: "5s",
    };
    const [asked] = await engine.atomically([sql.raw(question)]);
    expect(asked?.rows).toEqual([ours]);
  });

  it("every session asks for helpful settings, after a lost connection too", async () => {
    const connection = new PgConnection(new PgServers(await carelessDatabase()));
    onTestFinished(() => connection.close());
    const question = preparedText(questionAbout(Object.keys(helpful)));
    const ask = () => connection.run({ ...question, values: [] }, deadlineIn(2000));
    expect((await ask()).rows).toEqual([helpful]);
    connection.discard();
    expect((await ask()).rows).toEqual([helpful]);
  });

  it("every statement of a lane is durable and waits for locks no longer than it may", async () => {
    const url = await carelessDatabase();
    await openTestStore({ url, connectionsMax: 1, lanes: 1, usageTimeoutMs: 3000 });
    await logCommits(url);
    const lane = openLane(url, { timeoutMs: 3000 });
    await lane.settle([]);
    // The beginning of its writer, and its batch.
    const commit = { synchronous_commit: "on", isolation: "read committed", lock_timeout: "1s" };
    expect(await loggedCommits(url, "usage_writers")).toEqual([commit, commit]);
  });
});
