import { describe, expect, it } from "vitest";
import { createMetrics } from "../../src/ambient/metrics.ts";
import type { RateLimit } from "../../src/domain/rate-limit.ts";
import { bytesOfRows, WindowRows } from "../../src/domain/window-rows.ts";
import { WindowTable } from "../../src/domain/window-table.ts";
import { LocalLimiter } from "../../src/ratelimit/local/local-limiter.ts";
import { bytesOfGuard, SharedRowGuard } from "../../src/ratelimit/local/shared-row-guard.ts";
import { SharedLimiter } from "../../src/threads/shared-limiter.ts";
import { TestClock } from "../support/test-clock.ts";

const rule: RateLimit = { mode: "local", limit: 3, durationMs: 1000 };

/** The main thread's table and the limiters of two threads, all in this thread. */
function setUp(slotsMax = 2) {
  const clock = new TestClock();
  const ambient = { clock, metrics: createMetrics() };
  const [memory, guardMemory] = [
    new SharedArrayBuffer(bytesOfRows(slotsMax)),
    new SharedArrayBuffer(bytesOfGuard(slotsMax)),
  ];
  const table = new WindowTable(slotsMax, { shared: { memory, guard: new SharedRowGuard(guardMemory) } });
  const onMainThread = new LocalLimiter(table, ambient);
  const questions: string[] = [];
  const createLimiter = () =>
    new SharedLimiter({
      ...ambient,
      rows: new WindowRows(memory),
      guard: new SharedRowGuard(guardMemory),
      async askForRow(keyId, apiId) {
        questions.push(keyId);
        const slot = table.slotOf(keyId, apiId);
        return slot === undefined ? undefined : { slot, claim: table.claimOf(slot) };
      },
      peekOnMainThread: (keyId, by) => onMainThread.peek(keyId, by),
      listener: undefined,
    });
  return { clock, table, questions, one: createLimiter(), two: createLimiter() };
}

describe("limiters that share rows", () => {
  it("ask once for a key's row, many at a time too, and decide at once from then on", async () => {
    const { one, questions } = setUp();
    const first = await Promise.all([one.take("k", rule), one.take("k", rule)]);
    expect(first.map(({ remaining }) => remaining)).toEqual([2, 1]);
    expect(one.take("k", rule)).toMatchObject({ outcome: "admitted", remaining: 0 });
    expect(one.take("k", rule)).toMatchObject({ outcome: "limited", remaining: 0 });
    expect(questions).toEqual(["k"]);
  });

  it("ask for the API: one that gets no row keeps no other from it, not even for the same owner", async () => {
    const { one } = setUp(10);
    for (let i = 0; i < 9; i++) await one.take(`k${i}`, rule, 1, "big");
    const both = await Promise.allSettled(["big", "small"].map((apiId) => one.take("o/month/acme", rule, 1, apiId)));
    expect(both).toMatchObject([{ reason: { name: "Unavailable" } }, { value: { remaining: 2 } }]);
    expect(one.take("k0", rule, 1, "big")).toMatchObject({ outcome: "admitted" });
  });

  it("count in one window, and see what the other releases", async () => {
    const { one, two } = setUp();
    const permit = await one.take("k", rule);
    expect(await two.take("k", rule)).toMatchObject({ remaining: 1 });
    expect(await permit.release()).toMatchObject({ remaining: 2 });
    expect(two.peek("k", rule)).toMatchObject({ remaining: 2 });
  });

  it("ask again for a row that was given to another key, and touch nothing of that key's", async () => {
    const { one, clock, table, questions } = setUp(1);
    const old = await one.take("k", rule);
    clock.advance(1000);
    table.sweep(clock.monotonicMs(), 1);
    expect(await one.take("l", rule)).toMatchObject({ remaining: 2 });
    await old.release();
    old.commit();
    expect(one.take("l", rule)).toMatchObject({ remaining: 1 });
    await expect(one.take("k", rule)).rejects.toMatchObject({ name: "Unavailable" });
    expect(questions).toEqual(["k", "l", "k"]);
  });

  it("tell the state of a key without a row, and take no row", async () => {
    const { one, two, table } = setUp();
    expect(await two.peek("k", rule)).toMatchObject({ remaining: 3 });
    expect(table.size).toBe(0);
    await one.take("k", rule);
    expect(await two.peek("k", rule)).toMatchObject({ remaining: 2 });
  });

  it("forget rows that were given away", async () => {
    const { one, clock, table } = setUp();
    await one.take("k", rule);
    clock.advance(500);
    await one.take("l", rule);
    clock.advance(500);
    table.sweep(clock.monotonicMs(), 2);
    one.sweep(10);
    expect(one.size).toBe(1);
  });
});
