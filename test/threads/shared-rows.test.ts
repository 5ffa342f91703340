import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { describe, expect, it } from "vitest";
import type { RateLimit } from "../../src/domain/rate-limit.ts";
import { bytesOfRows } from "../../src/domain/window-rows.ts";
import { WindowTable } from "../../src/domain/window-table.ts";
import { bytesOfGuard, SharedRowGuard } from "../../src/ratelimit/local/shared-row-guard.ts";
import type { HammerSetup } from "./row-hammer.ts";

/** Has threads take from one row through so many windows; answers how many passed in each. */
async function hammer(threads: number, windows: number, isGuarded: boolean): Promise<number[]> {
  const setup: HammerSetup = {
    rows: new SharedArrayBuffer(bytesOfRows(1)),
    guard: new SharedArrayBuffer(bytesOfGuard(1)),
    state: new SharedArrayBuffer(4),
    admitted: new SharedArrayBuffer(4 * (windows + 1)),
    rule,
    windows,
    isGuarded,
  };
  const table = new WindowTable(1, { shared: { memory: setup.rows, guard: new SharedRowGuard(setup.guard) } });
  table.slotOf("k");
  const file = new URL("./row-hammer.ts", import.meta.url);
  const workers = Array.from({ length: threads }, () => new Worker(file, { workerData: setup }));
  await Promise.all(workers.map((worker) => once(worker, "exit")));
  return [...new Int32Array(setup.admitted)].slice(0, windows);
}

const rule: RateLimit = { mode: "local", limit: 50, durationMs: 1000 };

describe("threads that take from one row", () => {
  it.each([2, 3])("together let exactly the limit pass in each of 20000 windows: %i of them", async (threads) => {
    const passed = await hammer(threads, 20_000, true);
    expect(passed.filter((count) => count !== rule.limit)).toEqual([]);
  });

  it("would be seen to miss the limit without the guard", async () => {
    const passed = await hammer(2, 20_000, false);
    expect(passed.filter((count) => count !== rule.limit).length).toBeGreaterThan(0);
  });
});

describe("a guarded row", () => {
  const setUp = () => {
    const guard = new SharedRowGuard(new SharedArrayBuffer(bytesOfGuard(2)));
    const table = new WindowTable(2, { shared: { memory: new SharedArrayBuffer(bytesOfRows(2)), guard } });
    const slot = table.slotOf("k") as number;
    return { guard, table, slot, claim: guard.claimOf(slot) };
  };

  it("is not given away while its window is open; after that the old claim is not valid", () => {
    const { guard, table, slot, claim } = setUp();
    table.rows.take(slot, rule, 0);
    table.sweep(999, 2);
    expect(guard.claimOf(slot)).toBe(claim);
    table.sweep(1000, 2);
    expect(guard.claimOf(slot)).not.toBe(claim);
    expect(guard.hold(slot, claim)).toBe(false);
  });

  it("can be held under the new claim by the next key only", () => {
    const { guard, table, slot, claim } = setUp();
    table.sweep(0, 2);
    expect(table.slotOf("next")).toBe(slot);
    const next = guard.claimOf(slot);
    expect([guard.hold(slot, claim), guard.hold(slot, next)]).toEqual([false, true]);
    guard.letGo(slot, next);
    expect(guard.claimOf(slot)).toBe(next);
  });

  it("tells its claim while it is held", () => {
    const { guard, slot, claim } = setUp();
    guard.hold(slot, claim);
    expect(guard.claimOf(slot)).toBe(claim);
  });
});
