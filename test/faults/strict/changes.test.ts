import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it, vi } from "vitest";
import { type Clock, systemClock } from "../../../src/ambient/clock.ts";
import type { PermitChannel } from "../../../src/ratelimit/permit-channel.ts";
import type { Store } from "../../../src/store/store.ts";
import { SeededRandom } from "../../domain/seeded-random.ts";
import { isDeep, sized } from "../../support/deep.ts";
import { createMemoryStore } from "../../support/memory-store.ts";
import { openTestStore } from "../../support/open-test-store.ts";
import { type HarnessReplica, type StrictAnswer, StrictHarness } from "../../support/strict/index.ts";
import { hasPostgres } from "../../support/test-database.ts";

/** Goes on as ever, until it is set forward. */
class SettableClock implements Clock {
  aheadMs = 0;
  nowMs(): number {
    return systemClock.nowMs() + this.aheadMs;
  }
  monotonicMs(): number {
    return systemClock.monotonicMs() + this.aheadMs;
  }
  lateMs(): number {
    return systemClock.lateMs();
  }
}

const onPostgres = (ledgerClock: Clock) => openTestStore({ connectionsMax: 2, lanes: 1, ledgerClock });
const stores: { name: string; open: (clock: Clock) => Promise<Store> }[] = [
  { name: "in memory", open: async (clock) => createMemoryStore(clock) },
  ...(hasPostgres ? [{ name: "on Postgres", open: onPostgres }] : []),
];
const longMs = 60_000;

function strict(limit: number, durationMs = longMs) {
  return { mode: "strict", limit, durationMs } as const;
}

/** Every call is decided: one that a busy machine leaves undecided has taken nothing, and is made again. */
async function askTimes(replicas: readonly HarnessReplica[], times: number): Promise<StrictAnswer[]> {
  const ask = async (replica: HarnessReplica) => {
    for (;;) {
      const answer = await replica.ask(0);
      if (answer.outcome !== "unavailable") return answer;
    }
  };
  return Promise.all(Array.from({ length: times }, (_, i) => ask(replicas[i % replicas.length] as HarnessReplica)));
}

function passed(answers: readonly StrictAnswer[]): number {
  return answers.filter(({ outcome }) => outcome === "admitted").length;
}

function endsOf(answers: readonly StrictAnswer[]): number[] {
  return [...new Set(answers.map((answer) => ("resetMs" in answer ? answer.resetMs : 0)))];
}

/** The same channel. Counts what has no answer yet. */
function counted(own: PermitChannel, underWay: number[], replica: number): PermitChannel {
  const add = (change: number) => {
    underWay[replica] = (underWay[replica] as number) + change;
  };
  return {
    ...own,
    async exchange(...message) {
      add(1);
      try {
        return await own.exchange(...message);
      } finally {
        add(-1);
      }
    },
  };
}

if (!isDeep) {
  // At once, since each has a store of its own and mostly waits.
  describe.concurrent.each(stores)("while a window is open, $name,", ({ open }) => {
    async function start(limit: number, durationMs = longMs) {
      const clock = new SettableClock();
      const store = await open(clock);
      /** Messages of each replica without an answer. */
      const underWay: number[] = [];
      const harness = await StrictHarness.start({
        store,
        rules: [{ limit, durationMs }],
        replicas: 2,
        clock: () => clock,
        channel: (own) => counted(own, underWay, underWay.push(0) - 1),
      });
      /** A replica that learns of a change returns its permits. Resolves when it has none, and the ledger has got them back. */
      const haveReturned = (replicas = harness.replicas) =>
        vi.waitFor(() => {
          const left = replicas.map((replica) => {
            return replica.limiter.held + (underWay[harness.replicas.indexOf(replica)] as number);
          });
          expect(left).toEqual(replicas.map(() => 0));
        });
      return { harness, clock, haveReturned };
    }

    it.each([
      { from: 5, to: 8 },
      { from: 20, to: 100 },
      { from: 1, to: 2 },
    ])("a limit raised from $from to $to lets exactly the difference pass, at once", async ({ from, to }) => {
      const { harness } = await start(from);
      const before = await askTimes(harness.replicas, from * 2 + 2);
      expect(passed(before)).toBe(from);
      await harness.setRateLimit(0, strict(to));
      const after = await askTimes(harness.replicas, to * 2);
      expect(passed(after)).toBe(to - from);
      expect(endsOf([...before, ...after])).toHaveLength(1);
    });

    it.each([
      { name: "below what has passed lets no more pass", from: 20, first: 12, to: 5, more: 0 },
      { name: "to what has passed lets no more pass", from: 20, first: 10, to: 10, more: 0 },
      { name: "above what has passed lets the rest of it pass", from: 100, first: 12, to: 20, more: 8 },
    ])("a limit lowered $name, when every replica is told", async ({ from, first, to, more }) => {
      const { harness, haveReturned } = await start(from);
      expect(passed(await askTimes(harness.replicas, first))).toBe(first);
      await harness.setRateLimit(0, strict(to));
      // Until then permits held in advance may still be spent.
      await haveReturned();
      expect(passed(await askTimes(harness.replicas, from + 10))).toBe(more);
    });

    it("a replica that is not told of a lower limit spends no more than it holds, and never more than the old limit", async () => {
      const { harness, haveReturned } = await start(50);
      const [told, untold] = harness.replicas as [HarnessReplica, HarnessReplica];
      const first = passed(await askTimes([told, untold], 10));
      const held = untold.limiter.held;
      await harness.setRateLimit(0, strict(5), [told]);
      await haveReturned([told]);
      const after = passed(await askTimes([untold, told], 200));
      expect(after).toBeLessThanOrEqual(held);
      expect(first + after).toBeLessThanOrEqual(50);
    });

    it("another duration begins with the next window: the open one keeps its end", async () => {
      const { harness, clock } = await start(3);
      const [first] = (await askTimes(harness.replicas, 1)) as [StrictAnswer & { resetMs: number }];
      await harness.setRateLimit(0, strict(3, 3 * longMs));
      const rest = await askTimes(harness.replicas, 10);
      expect(passed(rest)).toBe(2);
      expect(endsOf(rest)).toEqual([first.resetMs]);
      clock.aheadMs += longMs;
      const [next] = (await askTimes(harness.replicas, 1)) as [StrictAnswer & { resetMs: number }];
      expect(next.outcome).toBe("admitted");
      expect(next.resetMs).toBeGreaterThanOrEqual(first.resetMs + 3 * longMs);
      expect(passed(await askTimes(harness.replicas, 10))).toBe(2);
    });

    it("a key that becomes local and strict again goes on in the same window", async () => {
      const { harness, haveReturned } = await start(10);
      const before = await askTimes(harness.replicas, 6);
      await harness.setRateLimit(0, { mode: "local", limit: 10, durationMs: longMs });
      await harness.setRateLimit(0, strict(10));
      await haveReturned();
      const after = await askTimes(harness.replicas, 30);
      expect([passed(before), passed(after)]).toEqual([6, 4]);
      expect(endsOf([...before, ...after])).toHaveLength(1);
    });

    it("a deleted key is missing for all callers: on replicas that wait and on replicas that hold permits", async () => {
      const { harness, haveReturned } = await start(100);
      await askTimes(harness.replicas, 20);
      const waiting = askTimes(harness.replicas, 200);
      await harness.deleteKey(0);
      await waiting;
      await haveReturned();
      expect(harness.replicas.map(({ limiter }) => limiter.held)).toEqual([0, 0]);
      const after = await askTimes(harness.replicas, 20);
      expect(after).toEqual(after.map(() => ({ outcome: "odd", what: "key 0 is missing" })));
    });
  });
}

describe.concurrent("limits changed again and again under load", () => {
  it("never let more pass in a window than the highest of them", async () => {
    const random = new SeededRandom(3);
    const [limitMax, durationMs] = [40, 1000];
    const store = createMemoryStore(systemClock);
    const harness = await StrictHarness.start({ store, rules: [{ limit: limitMax, durationMs }], replicas: 3 });
    const passedBy = new Map<number, number>();
    const windowsAtLeast = 3;
    const atLeastUntilMs = performance.now() + sized(0, 4000);
    // Until a few windows are over: the first are often short, since the limit was low in them.
    const isEnough = () =>
      performance.now() > atLeastUntilMs &&
      passedBy.size >= windowsAtLeast &&
      Math.max(...passedBy.values()) > limitMax / 2;
    const ask = async (replica: HarnessReplica) => {
      while (!isEnough()) {
        const answer = await replica.ask(0);
        if ("resetMs" in answer) passedBy.set(answer.resetMs, (passedBy.get(answer.resetMs) ?? 0) + passed([answer]));
        await delay(random.integer(1, 20));
      }
    };
    const change = async () => {
      while (!isEnough()) {
        await delay(random.integer(5, 60));
        const told = harness.replicas.filter(() => random.chance(0.7));
        await harness.setRateLimit(0, strict(random.integer(1, limitMax), durationMs), told);
      }
    };
    await Promise.all([...harness.replicas.flatMap((each) => [ask(each), ask(each), ask(each)]), change()]);
    expect(Math.max(...passedBy.values())).toBeLessThanOrEqual(limitMax);
  });
});
