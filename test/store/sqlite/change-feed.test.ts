import { describe, expect, it } from "vitest";
import type { FeedPosition } from "../../../src/store/change-feed.ts";
import { createSqlChangeFeed } from "../../../src/store/sql/sql-change-feed.ts";
import { tidyChanges } from "../../../src/store/sql/tidy.ts";
import { sampleKey } from "../../contract/sample-keys.ts";
import { createKey, deleteKey } from "../../support/manage.ts";
import { openTestEngine, readRows, tamper } from "./open-test-engine.ts";

async function setUp() {
  const { file, clock, keys, engine } = await openTestEngine();
  const deleteOne = async () => {
    const key = sampleKey(clock);
    await createKey(keys, key);
    await deleteKey(keys, key.id);
    return key;
  };
  return { file, engine, deleteOne, feed: createSqlChangeFeed(engine) };
}

describe("the change feed of the embedded store", () => {
  it("gives no number twice, also after all old rows were tidied away", async () => {
    const { file, engine, feed, deleteOne } = await setUp();
    const positions: FeedPosition[] = [];
    for (let i = 0; i < 5; i++) {
      positions.push((await feed.read(undefined)).position);
      await deleteOne();
    }
    await tidyChanges(engine, 2);
    expect(readRows(file, "SELECT count(*) AS n FROM changes")).toEqual([{ n: 2n }]);
    const told = await Promise.all(positions.map(async (since) => (await feed.read(since)).changed.length));
    // "everything" has ten letters.
    expect(told).toEqual([10, 10, 10, 2, 1]);
    await tidyChanges(engine, 1);
    const { position } = await feed.read(undefined);
    const key = await deleteOne();
    expect((await feed.read(position)).changed).toEqual([{ kind: "key", keyId: key.id, digests: [key.secretDigest] }]);
  });

  it("tidies in small steps, and all of a transaction that has more rows than a step", async () => {
    const { file, engine, feed } = await setUp();
    const rows = (transaction: number, count: number) =>
      `INSERT INTO changes (transaction_id, kind) WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${count})
       SELECT ${transaction} + (i * ${transaction === 1 ? 0 : 1}), 'rootKeys' FROM n`;
    tamper(file, rows(1, 700));
    tamper(file, rows(10, 1300));
    await tidyChanges(engine, 3);
    expect(readRows(file, "SELECT count(*) AS n FROM changes")).toEqual([{ n: 3n }]);
    expect((await feed.read(undefined)).position.transaction).toBe(1311);
  });

  it("tells what was added by hand, by the line of the operations guide, and a new epoch", async () => {
    const { file, feed } = await setUp();
    let { position } = await feed.read(undefined);
    const lines = [
      "INSERT INTO changes (transaction_id, kind) SELECT max(transaction_id) + 1, 'everything' FROM changes",
      "UPDATE change_feed SET epoch = CAST(random() AS text)",
    ];
    for (const line of lines) {
      tamper(file, line);
      const news = await feed.read(position);
      expect(news.changed).toBe("everything");
      position = news.position;
      expect((await feed.read(position)).changed).toEqual([]);
    }
  });
});
