import { once } from "node:events";
import { existsSync } from "node:fs";
import type { Worker } from "node:worker_threads";
import { describe, expect, it } from "vitest";
import { Unavailable } from "../../../src/domain/unavailable.ts";
import { sql } from "../../../src/store/sql/sql.ts";
import { sampleKey } from "../../contract/sample-keys.ts";
import { createKey } from "../../support/manage.ts";
import { openTestEngine, tamper } from "./open-test-engine.ts";

const list = { kind: "keys", apiId: "api_1", limit: 10 } as const;

async function setUp() {
  const test = await openTestEngine();
  const key = sampleKey(test.clock);
  await createKey(test.keys, key);
  const ids = async () => (await test.keys.read(list)).items.map(({ id }) => id);
  return { ...test, key, ids, lists: test.engine.lists };
}

describe("the thread that reads lists", () => {
  it("is started by the first list, and reads all of them", async () => {
    const { keys, key, ids, lists } = await setUp();
    await keys.read({ kind: "key", id: key.id });
    await keys.findByDigest(key.secretDigest);
    expect(lists.thread).toBeUndefined();
    expect(await ids()).toEqual([key.id]);
    const { thread } = lists;
    expect(thread).toBeDefined();
    expect(await ids()).toEqual([key.id]);
    expect(lists.thread).toBe(thread);
  });

  it("dies for its caller only, and is started again", async () => {
    const { engine, keys, key, ids, lists, deaths, clock } = await setUp();
    await ids();
    // Takes long enough for the thread to be ended meanwhile.
    const count = sql`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000000) SELECT max(i) FROM n`;
    const cut = engine.scan(count);
    const waiting = ids();
    await Promise.all([(lists.thread as Worker).terminate(), expect(cut).rejects.toThrow(Unavailable)]);
    expect(await waiting).toEqual([key.id]);
    const another = sampleKey(clock);
    await createKey(keys, another);
    expect(new Set(await ids())).toEqual(new Set([key.id, another.id]));
    expect(await keys.findByDigest(another.secretDigest)).toBeDefined();
    expect(deaths).toEqual([]);
  });

  it("is started again when it died with nothing to do", async () => {
    const { key, ids, lists } = await setUp();
    await ids();
    const dead = lists.thread as Worker;
    await dead.terminate();
    expect(await ids()).toEqual([key.id]);
    expect(lists.thread).not.toBe(dead);
  });

  it("has 100 lists wait for it, and further ones are Unavailable", async () => {
    const { ids } = await setUp();
    const settled = await Promise.allSettled(Array.from({ length: 150 }, ids));
    const refused = settled.filter(({ status }) => status === "rejected");
    expect(refused.length).toBe(150 - 101);
    expect(refused).toEqual(refused.map(() => ({ status: "rejected", reason: expect.any(Unavailable) })));
    await ids();
  });

  it("ends with the store: the list under way is answered, those that wait are Unavailable", async () => {
    const { engine, file, key, ids, lists } = await setUp();
    await ids();
    const exited = once(lists.thread as Worker, "exit");
    const all = Promise.allSettled([ids(), ids(), ids()]);
    await engine.close();
    await exited;
    const refused = { status: "rejected", reason: expect.any(Unavailable) };
    expect(await all).toEqual([{ status: "fulfilled", value: [key.id] }, refused, refused]);
    await expect(ids()).rejects.toThrow(Unavailable);
    // An open connection would keep it in place.
    expect(existsSync(`${file}-wal`)).toBe(false);
  });

  it("answers Unavailable where a statement fails, and reads on", async () => {
    const { engine, file, key, ids } = await setUp();
    tamper(file, "ALTER TABLE counters RENAME TO elsewhere");
    await expect(ids()).rejects.toThrow(Unavailable);
    tamper(file, "ALTER TABLE elsewhere RENAME TO counters");
    expect(await ids()).toEqual([key.id]);
    expect(engine.lists.thread).toBeDefined();
  });
});
