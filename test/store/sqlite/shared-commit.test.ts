import { describe, expect, it } from "vitest";
import { Unavailable } from "../../../src/domain/unavailable.ts";
import { CheckViolation, UniqueViolation } from "../../../src/store/sql/sql-engine.ts";
import { foundAs, sampleKey } from "../../contract/sample-keys.ts";
import { createKey, done } from "../../support/manage.ts";
import { openTestEngine, readRows } from "./open-test-engine.ts";

const settled = (granted: number, remaining: number) => ({ outcome: "settled", granted, remaining });

describe("jobs that share one commit", () => {
  it("are stored but for the one whose digest exists already, of which nothing is", async () => {
    const { file, clock, keys, settle, commits } = await openTestEngine();
    const counted = sampleKey(clock, { remaining: 5 });
    await createKey(keys, counted);
    const [before, after] = [sampleKey(clock), sampleKey(clock)];
    const twin = sampleKey(clock, { apiId: "api_of_twin", remaining: 1, secretDigest: counted.secretDigest });
    const [first, refused, use, last] = await Promise.allSettled([
      createKey(keys, before),
      createKey(keys, twin),
      settle([{ subject: counted.id, cost: 1, count: 1 }]),
      createKey(keys, after),
    ]);
    expect(commits.at(-1)).toBe(4);
    expect(refused).toMatchObject({ status: "rejected", reason: expect.any(UniqueViolation) });
    expect([first, last]).toEqual(new Array(2).fill({ status: "fulfilled", value: done }));
    expect(use).toEqual({ status: "fulfilled", value: [settled(1, 4)] });
    for (const key of [before, after]) expect(await keys.findByDigest(key.secretDigest)).toStrictEqual(foundAs(key));
    expect(await keys.findByDigest(counted.secretDigest)).toMatchObject({ id: counted.id });
    expect(readRows(file, "SELECT id FROM apis WHERE id = 'api_of_twin'")).toEqual([]);
    expect(readRows(file, `SELECT id FROM keys WHERE id = '${twin.id}'`)).toEqual([]);
  });

  it.each([
    ["a table that does not exist", "INSERT INTO nowhere VALUES (1)", Unavailable],
    ["a counter below 0", "UPDATE counters SET remaining = -1", CheckViolation],
    ["a text that is no SQL", "WRITE IT DOWN", Unavailable],
    [
      "a foreign key that points nowhere",
      "INSERT INTO ending_secrets VALUES ('digest', 'no key', 'start', 1, 2)",
      Unavailable,
    ],
  ])("are stored but for the one that fails over %s, with its error", async (_, sql, error) => {
    const { file, clock, engine, keys, settle, commits } = await openTestEngine();
    const counted = sampleKey(clock, { remaining: 5 });
    await createKey(keys, counted);
    const mark = {
      sql: "INSERT INTO apis (id, name, defaults, is_deleting, created_at_ms, updated_at_ms, version, event_id) VALUES ('of the failed job', NULL, '{}', 0, 1, 1, 1, '')",
      parameters: [],
    };
    const [use, failed, created] = await Promise.allSettled([
      settle([{ subject: counted.id, cost: 1, count: 1 }]),
      engine.writer.run([mark, { sql, parameters: [] }]),
      createKey(keys, sampleKey(clock)),
    ]);
    expect(commits.at(-1)).toBe(3);
    expect(failed).toMatchObject({ status: "rejected", reason: expect.any(error) });
    expect(use).toEqual({ status: "fulfilled", value: [settled(1, 4)] });
    expect(created.status).toBe("fulfilled");
    expect(readRows(file, "SELECT id FROM apis WHERE id = 'of the failed job'")).toEqual([]);
    expect(await keys.findByDigest(counted.secretDigest)).toMatchObject({ counter: { remaining: 4 } });
  });

  it("are refused together, with nothing of any of them stored, when the disk is full, and go on once it is not", async () => {
    const { clock, engine, keys, settle } = await openTestEngine();
    const counted = sampleKey(clock, { remaining: 5 });
    await createKey(keys, counted);
    await engine.writer.run([{ sql: "PRAGMA max_page_count = 100", parameters: [] }]);
    const large =
      "INSERT INTO apis (id, name, defaults, is_deleting, created_at_ms, updated_at_ms, version, event_id) VALUES ('large', ?, '{}', 0, 1, 1, 1, '')";
    const small = sampleKey(clock);
    const all = () =>
      Promise.allSettled([
        settle([{ subject: counted.id, cost: 1, count: 1 }]),
        engine.writer.run([{ sql: large, parameters: ["x".repeat(1_000_000)] }]),
        createKey(keys, small),
      ]);

    const refusal = {
      status: "rejected",
      reason: new Unavailable("nothing was written: database or disk is full", { nothingDone: true }),
    };
    expect(await all()).toEqual([refusal, refusal, refusal]);
    expect(engine.writer.isFull).toBe(true);
    await engine.writer.run([{ sql: "DELETE FROM apis WHERE id = 'none'", parameters: [] }]);
    expect(engine.writer.isFull, "it had nothing to write").toBe(true);
    expect(await keys.findByDigest(small.secretDigest)).toBeUndefined();
    expect(await keys.findByDigest(counted.secretDigest)).toMatchObject({ counter: { remaining: 5 } });

    await engine.writer.run([{ sql: "PRAGMA max_page_count = 1000000", parameters: [] }]);
    expect((await all()).map(({ status }) => status)).toEqual(["fulfilled", "fulfilled", "fulfilled"]);
    expect(engine.writer.isFull).toBe(false);
    expect(await keys.findByDigest(small.secretDigest)).toStrictEqual(foundAs(small));
    expect(await keys.findByDigest(counted.secretDigest)).toMatchObject({ counter: { remaining: 4 } });
  });

  it("are stored but for a key that does not fit on the disk, of which nothing is", async () => {
    const { file, clock, engine, keys } = await openTestEngine();
    await engine.writer.run([{ sql: "PRAGMA max_page_count = 100", parameters: [] }]);
    const large = sampleKey(clock, { apiId: "api_of_large", meta: { large: "x".repeat(1_000_000) }, remaining: 5 });
    const small = sampleKey(clock);
    const [refused, created] = await Promise.allSettled([createKey(keys, large), createKey(keys, small)]);
    expect(refused).toMatchObject({ status: "rejected", reason: expect.any(Unavailable) });
    expect(created.status).toBe("fulfilled");
    expect(await keys.findByDigest(small.secretDigest)).toStrictEqual(foundAs(small));
    expect(readRows(file, "SELECT id FROM apis WHERE id = 'api_of_large'")).toEqual([]);
  });

  it("are all done, in order, before a store that is being closed is closed", async () => {
    const { file, clock, engine, keys } = await openTestEngine();
    const creating = Promise.all(Array.from({ length: 1200 }, () => createKey(keys, sampleKey(clock))));
    const closing = engine.close();
    await Promise.all([creating, closing]);
    expect(readRows(file, "SELECT count(*) AS n FROM keys")).toEqual([{ n: 1200n }]);
  });

  it("are refused with Unavailable once the store is closed, and closing it again is no mistake", async () => {
    const { clock, engine, keys, settle, deaths } = await openTestEngine();
    await engine.close();
    await expect(createKey(keys, sampleKey(clock))).rejects.toThrow(Unavailable);
    await expect(settle([{ subject: "any", cost: 1, count: 1 }])).rejects.toThrow(Unavailable);
    await engine.close();
    expect(deaths).toEqual([]);
  });
});
