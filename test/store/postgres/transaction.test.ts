import net from "node:net";
import { beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { openPgEngine, type PgEngine } from "../../../src/store/postgres/open-postgres-store.ts";
import { PgConnection } from "../../../src/store/postgres/pg-connection.ts";
import { PgServers } from "../../../src/store/postgres/pg-servers.ts";
import { type Sql, sql } from "../../../src/store/sql/sql.ts";
import { UniqueViolation } from "../../../src/store/sql/sql-engine.ts";
import { through } from "../../faults/postgres/lane-fixture.ts";
import { deadlineIn } from "../../support/deadline-in.ts";
import { createEmptyDatabase, hasPostgres } from "../../support/test-database.ts";

describe.runIf(hasPostgres)("a transaction of the pool", () => {
  let url: string;
  beforeAll(async () => {
    url = await createEmptyDatabase();
    const engine = open(url);
    await engine.atomically([sql`CREATE TABLE things (id text PRIMARY KEY, n bigint)`]);
    await engine.close();
  });

  it("takes one round trip, however many statements it has, and answers each", async () => {
    const link = await countRoundTrips(url);
    const engine = openOne(link.url);
    await engine.atomically([]);
    const before = link.roundTrips();
    const [added, raised, read] = await engine.atomically([
      insert("a", 1),
      sql`UPDATE things SET n = n + 1 WHERE id = ${"a"} RETURNING n`,
      sql`SELECT id, n, NULL AS none FROM things WHERE id = 'a'`,
    ]);
    expect(link.roundTrips() - before).toBe(1);
    expect(added).toMatchObject({ rows: [], changes: 1 });
    expect(raised?.rows).toEqual([{ n: 2 }]);
    expect(read?.rows).toEqual([{ id: "a", n: 2, none: null }]);
  });

  it("is answered the same when it is repeated, and its columns are not asked for again", async () => {
    const link = await countRoundTrips(url);
    const engine = openOne(link.url);
    const transaction = () =>
      engine.atomically([
        sql`SELECT ${"it's"}::text AS id, 7::bigint AS n, true AS yes, NULL AS none`,
        insert("again", 1),
        sql`DELETE FROM things WHERE id = 'again' RETURNING n`,
        sql`SELECT n FROM things WHERE id = 'again'`,
      ]);
    await engine.atomically([]);
    const connected = link.receivedBytes();
    const first = await transaction();
    const asked = link.receivedBytes();
    expect(first[0]?.rows).toEqual([{ id: "it's", n: 7, yes: true, none: null }]);
    expect(first[2]?.rows).toEqual([{ n: 1 }]);
    expect(await transaction()).toEqual(first);
    expect(link.receivedBytes() - asked).toBeLessThan((asked - connected) * 0.7);
  });

  it("is undone as a whole if a statement fails, and its connection can be used again", async () => {
    const engine = openOne(url);
    await engine.atomically([insert("taken", null)]);
    const failing = engine.atomically([insert("before", 1), insert("taken", 1), insert("behind", 1)]);
    await expect(failing).rejects.toBeInstanceOf(UniqueViolation);
    const [found] = await engine.atomically([sql`SELECT id FROM things WHERE id IN ('before', 'taken', 'behind')`]);
    expect(found?.rows).toEqual([{ id: "taken" }]);
  });

  it("does not run a statement alone if it could not be begun", async () => {
    const connection = new PgConnection(new PgServers(url));
    onTestFinished(() => connection.close());
    await connection.ready();
    const begin = { text: "BEGIN ISOLATION LEVEL UNHEARD OF", values: [] };
    const add = { text: "INSERT INTO things VALUES ('alone', 1)", values: [] };
    await expect(connection.session().runAll([begin, add], deadlineIn(5000))).rejects.toMatchObject({ code: "42601" });
    const found = await connection.run({ text: "SELECT FROM things WHERE id = 'alone'", values: [] }, deadlineIn(5000));
    expect(found.rowCount).toBe(0);
  });
});

function insert(id: string, n: number | null): Sql {
  return sql`INSERT INTO things (id, n) VALUES (${id}, ${n})`;
}

function open(url: string): PgEngine {
  return openPgEngine({ url, connectionsMax: 1 });
}

function openOne(url: string): PgEngine {
  const engine = open(url);
  onTestFinished(() => engine.close());
  return engine;
}

/** A link to the database that counts how often the client sends something after it was answered. */
async function countRoundTrips(url: string) {
  let roundTrips = 0;
  let receivedBytes = 0;
  let isAnswered = true;
  const link = net.createServer((near) => {
    const far = net.connect({ host: "127.0.0.1", port: Number(new URL(url).port) }).on("error", () => {});
    near.on("data", () => {
      if (isAnswered) roundTrips++;
      isAnswered = false;
    });
    far.on("data", ({ length }) => {
      isAnswered = true;
      receivedBytes += length;
    });
    near.pipe(far).pipe(near);
    near.on("error", () => {}).on("close", () => far.destroy());
  });
  await new Promise<void>((resolve) => link.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void link.close());
  return {
    url: through(url, (link.address() as net.AddressInfo).port),
    roundTrips: () => roundTrips,
    receivedBytes: () => receivedBytes,
  };
}
