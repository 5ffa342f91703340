import { describe, expect, it } from "vitest";
import { createLog } from "../../src/ambient/log.ts";
import { createMetrics } from "../../src/ambient/metrics.ts";
import type { RateLimit } from "../../src/domain/rate-limit.ts";
import type { WindowNews } from "../../src/domain/shared-window.ts";
import { WindowTable } from "../../src/domain/window-table.ts";
import { type HubAnswer, MemoryHub, type SubjectReport, type WindowHub } from "../../src/ratelimit/local/window-hub.ts";
import { WindowSync } from "../../src/ratelimit/local/window-sync.ts";
import { nextTurn } from "../batching/next-turn.ts";
import { TestClock } from "../support/test-clock.ts";

const rule: RateLimit = { mode: "local", limit: 100, durationMs: 10_000 };

/** A hub that answers when the test says so. */
class HeldHub implements WindowHub {
  isReachable = true;
  isWhole = true;
  readonly exchanges: HeldExchange[] = [];
  inner: MemoryHub;
  readonly #clock: TestClock;

  constructor(clock: TestClock) {
    this.#clock = clock;
    this.inner = this.#newHub("first");
  }

  /** As after a restart. */
  loseData(): void {
    this.inner = this.#newHub("second");
  }

  #newHub(epoch: string): MemoryHub {
    return new MemoryHub({ nowMs: () => this.#clock.nowMs(), windowsMax: 3000, freeStandingMax: 0, epoch });
  }

  exchange(reports: readonly SubjectReport[]): Promise<HubAnswer> {
    return new Promise((resolve, reject) => {
      this.exchanges.push({
        keys: reports.map(({ subject }) => subject),
        counts: reports.map(({ report }) => report.count),
        answer: async (change = (answer) => answer) => {
          resolve(change(await this.inner.exchange(reports)));
          await nextTurn();
        },
        fail: async () => {
          reject(new Error("the hub is gone"));
          await nextTurn();
        },
      });
    });
  }
}

interface HeldExchange {
  readonly keys: readonly string[];
  readonly counts: readonly number[];
  answer(change?: (answer: HubAnswer) => HubAnswer): Promise<void>;
  fail(): Promise<void>;
}

function setUp(slotsMax = 2000) {
  const clock = new TestClock();
  const hub = new HeldHub(clock);
  const table = new WindowTable(slotsMax);
  const synced: string[] = [];
  const metrics = {
    ...createMetrics(),
    windowsSynced: (event: string, n = 1) => void synced.push(`${event} ${n}`),
  };
  const logged: string[] = [];
  const log = createLog("info", (line) => {
    const { msg, reason } = JSON.parse(line);
    logged.push(reason === undefined ? msg : `${msg}: ${reason}`);
  });
  const sync = new WindowSync({ table, hub, replica: "a", clock, metrics, log });
  const use = (key: string, urgent = false) => {
    const slot = table.slotOf(key) as number;
    table.rows.take(slot, rule, clock.monotonicMs());
    table.rows.commit(slot, table.rows.epoch(slot));
    sync.changed(slot, urgent);
    return slot;
  };
  return { clock, hub, table, sync, use, synced, logged };
}

/** The reports in the exchanges since the last call. */
function sentSince({ hub }: ReturnType<typeof setUp>): readonly (readonly string[])[] {
  return hub.exchanges.splice(0).map(({ keys }) => keys);
}

/** Ticks, and has every exchange of the tick answered. */
async function tick({ sync, hub }: ReturnType<typeof setUp>): Promise<readonly (readonly string[])[]> {
  const ticked = sync.tick();
  const exchanges = hub.exchanges.splice(0);
  for (const exchange of exchanges) await exchange.answer();
  await ticked;
  return exchanges.map(({ keys }) => keys);
}

describe("WindowSync", () => {
  it("reports a changed window once with the next tick, with its state at that time, and not again", async () => {
    const all = setUp();
    for (let i = 0; i < 3; i++) all.use("k");
    await nextTurn();
    expect(all.hub.exchanges).toHaveLength(0);
    const ticked = all.sync.tick();
    expect(all.hub.exchanges[0]).toMatchObject({ keys: ["k"], counts: [3] });
    await all.hub.exchanges.shift()?.answer();
    await ticked;
    // The hub is new to this replica, so all windows are reported once more.
    expect(await tick(all)).toEqual([["k"]]);
    expect(await tick(all)).toEqual([[]]);
  });

  it("reports urgent windows at once, after the requests of the same turn", async () => {
    const all = setUp();
    for (const key of ["k", "l", "k"]) all.use(key, true);
    expect(all.hub.exchanges).toHaveLength(0);
    await nextTurn();
    expect(sentSince(all)).toEqual([["k", "l"]]);
  });

  it("never has a window under way twice; changes in between go with a later tick", async () => {
    const all = setUp();
    all.use("k", true);
    await nextTurn();
    const [first] = all.hub.exchanges.splice(0);
    all.use("k", true);
    await nextTurn();
    expect(sentSince(all)).toEqual([]);
    expect(await tick(all)).toEqual([[]]);
    await first?.answer();
    const ticked = all.sync.tick();
    expect(all.hub.exchanges[0]).toMatchObject({ keys: ["k"], counts: [2] });
    await all.hub.exchanges[0]?.answer();
    await ticked;
  });

  it("reports a failed window again with the next tick, with its new state", async () => {
    const all = setUp();
    all.use("k", true);
    await nextTurn();
    await all.hub.exchanges.shift()?.fail();
    all.use("k");
    const ticked = all.sync.tick();
    expect(all.hub.exchanges[0]).toMatchObject({ keys: ["k"], counts: [2] });
    await all.hub.exchanges.shift()?.fail();
    await ticked;
    expect(await tick(all)).toEqual([["k"]]);
    expect(all.synced).toEqual(["failed 1", "failed 1", "merged 1"]);
  });

  it("reports a window that was not merged again, and uses the rest of the same answer", async () => {
    const all = setUp();
    await tick(all);
    const [k, l] = [all.use("k"), all.use("l")];
    const ticked = all.sync.tick();
    await all.hub.exchanges.shift()?.answer(({ news, epoch }) => ({
      news: [undefined, { ...(news[1] as WindowNews), others: 90 }],
      epoch,
    }));
    await ticked;
    expect([k, l].map((slot) => all.table.rows.remaining(slot, 100, 0))).toEqual([99, 9]);
    expect(await tick(all)).toEqual([["k"]]);
  });

  it("is up while no window has failed and the hub is whole, and tells each reason once", async () => {
    const all = setUp();
    /** Ticks; the windows whose names begin with "bad" come to nothing. */
    const tickWith = async (refusal: string | undefined) => {
      const ticked = all.sync.tick();
      for (const exchange of all.hub.exchanges.splice(0)) {
        await exchange.answer(({ news, epoch }) => ({
          news: news.map((told, i) => (refusal && exchange.keys[i]?.startsWith("bad") ? undefined : told)),
          epoch,
          refusal,
        }));
      }
      await ticked;
    };
    await tick(all);
    for (const key of ["bad1", "good", "bad2"]) all.use(key);
    expect(all.sync.isUp).toBe(true);
    await tickWith("OOM");
    expect(all.sync.isUp).toBe(false);
    expect(all.synced.slice(-2)).toEqual(["merged 1", "failed 2"]);
    // Others that go well do not hide it.
    all.use("good", true);
    await nextTurn();
    await all.hub.exchanges.shift()?.answer();
    expect(all.sync.isUp).toBe(false);
    for (const reason of ["OOM", "OOM", "MOVED", "OOM"]) await tickWith(reason);
    expect(all.sync.isUp).toBe(false);
    await tickWith(undefined);
    expect(all.sync.isUp).toBe(true);
    const failed = "some rate-limit windows cannot be told to the other replicas";
    const again = "all rate-limit windows are told to the other replicas again";
    expect(all.logged).toEqual([`${failed}: OOM`, `${failed}: MOVED`, again]);

    all.use("bad1");
    await tickWith("OOM");
    expect(all.sync.isUp).toBe(false);
    // A window that is over need not be reported.
    all.clock.advance(10_000);
    await tickWith("OOM");
    expect(all.sync.isUp).toBe(true);
    expect(all.logged.slice(3)).toEqual([`${failed}: OOM`, again]);

    all.hub.isWhole = false;
    expect(all.sync.isUp).toBe(false);
  });

  it("sends one batch of failed windows per tick while they fail, none immediately, and all after a batch went well", async () => {
    const all = setUp();
    await tick(all);
    for (let i = 0; i < 1201; i++) all.use(`k${i}`);
    const failing = all.sync.tick();
    for (const exchange of all.hub.exchanges.splice(0)) await exchange.fail();
    await failing;
    for (let i = 0; i < 3; i++) {
      all.use("k7", true);
      await nextTurn();
      expect(sentSince(all)).toEqual([]);
      const ticked = all.sync.tick();
      const exchanges = all.hub.exchanges.splice(0);
      expect(exchanges.map(({ keys }) => keys.length)).toEqual([500]);
      for (const exchange of exchanges) await exchange.fail();
      await ticked;
    }
    expect((await tick(all)).map((keys) => keys.length)).toEqual([500]);
    expect((await tick(all)).flat()).toHaveLength(701);
    expect(all.sync.isUp).toBe(true);
  });

  it("sends nothing to a hub that cannot be reached, and everything when it can", async () => {
    const all = setUp();
    all.hub.isReachable = false;
    all.use("k", true);
    all.use("l");
    await nextTurn();
    await all.sync.tick();
    expect(sentSince(all)).toEqual([]);
    all.hub.isReachable = true;
    expect(await tick(all)).toEqual([["k", "l"]]);
  });

  it("reports every window in use to a hub that has lost its data, also those without new verifications", async () => {
    const all = setUp();
    for (const key of ["k", "l", "m"]) all.use(key);
    await tick(all);
    await tick(all);
    all.use("k");
    expect(await tick(all)).toEqual([["k"]]);
    all.hub.loseData();
    // Also when there is nothing to report: the empty batch asks.
    expect(await tick(all)).toEqual([[]]);
    expect((await tick(all)).flat().sort()).toEqual(["k", "l", "m"]);
    expect(await tick(all)).toEqual([[]]);
  });

  it("learns what the others have used", async () => {
    const all = setUp();
    const slot = all.use("k");
    const report = { replica: "b", gen: 1, count: 98, endsInMs: 10_000, durationMs: 10_000, previousGen: 0 };
    await all.hub.inner.exchange([{ subject: "k", report }]);
    await tick(all);
    expect(all.table.rows.remaining(slot, 100, 0)).toBe(1);
  });

  it("ignores the answer for a window whose place another key has by now", async () => {
    const all = setUp(1);
    all.use("k", true);
    await nextTurn();
    all.clock.advance(10_000);
    all.table.sweep(all.clock.monotonicMs(), 1);
    const slot = all.use("other");
    await all.hub.exchanges.shift()?.answer(({ news, epoch }) => ({
      news: news.map((told) => told && { ...told, gen: 2, others: 100 }),
      epoch,
    }));
    expect(all.table.idOf(slot)).toBe("other");
    expect(all.table.rows.remaining(slot, 100, all.clock.monotonicMs())).toBe(99);
    expect(await tick(all)).toEqual([["other"]]);
  });

  it("leaves out windows that are over", async () => {
    const all = setUp();
    all.use("k");
    all.clock.advance(10_000);
    expect(await tick(all)).toEqual([[]]);
  });

  it("sends at most 500 windows in a batch", async () => {
    const all = setUp();
    for (let i = 0; i < 1201; i++) all.use(`k${i}`);
    expect((await tick(all)).map((keys) => keys.length)).toEqual([500, 500, 201]);
  });

  it("has at most 16 batches of urgent windows under way; more go with the next tick", async () => {
    const all = setUp();
    for (let i = 0; i < 20; i++) {
      all.use(`k${i}`, true);
      await nextTurn();
    }
    expect(all.hub.exchanges).toHaveLength(16);
    const held = all.hub.exchanges.splice(0);
    expect(await tick(all)).toEqual([["k16", "k17", "k18", "k19"]]);
    for (const exchange of held) await exchange.answer();
  });
});
