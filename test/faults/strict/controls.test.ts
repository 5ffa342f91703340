import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { type Clock, systemClock } from "../../../src/ambient/clock.ts";
import { Unavailable } from "../../../src/domain/unavailable.ts";
import type { PermitChannel } from "../../../src/ratelimit/permit-channel.ts";
import type { PermitEngine, SubjectAsk } from "../../../src/store/permit-ledger.ts";
import { SeededRandom } from "../../domain/seeded-random.ts";
import { sized } from "../../support/deep.ts";
import { createMemoryStore } from "../../support/memory-store.ts";
import {
  demandOf,
  type HarnessOptions,
  type KeyDemand,
  type StrictBook,
  StrictHarness,
  StrictLoad,
} from "../../support/strict/index.ts";

const hourMs = 3_600_000;
/** However busy the machine is, every call is decided; at full size, in the time that the server gives it. */
const timeoutMs = sized(60_000, 450);
const keys = demandOf([
  { keys: 9, limit: 20, durationMs: 1000 },
  { keys: 9, limit: 60, durationMs: 1000 },
]);

/** Most calls cost 1. Some cost so much that replicas hold parts of it, and one in ten more than is ever left for long. */
const costly = keys.map((key) => ({ ...key, costs: [1, 1, 1, 1, 1, 2, 3, 5, 7, 20] }));

/** A channel with slow answers. Some are lost after the ask was settled, most of all answers to returns. */
function lossyWay(random: SeededRandom): (own: PermitChannel) => PermitChannel {
  return (own) => ({
    ...own,
    async exchange(keyId, ask) {
      await delay(random.integer(0, 4));
      const result = await own.exchange(keyId, ask);
      await delay(random.integer(0, 4));
      if (random.chance(ask.returned > 0 ? 1 / 2 : 1 / 20)) throw new Unavailable("the answer was lost");
      return result;
    },
  });
}

/** A clock that can be set to any replica's for the moment of one exchange. */
class ReplicaClock implements Clock {
  offsetMs = 0;
  nowMs(): number {
    return systemClock.nowMs() + this.offsetMs;
  }
  monotonicMs(): number {
    return systemClock.monotonicMs() + this.offsetMs;
  }
  lateMs(): number {
    return systemClock.lateMs();
  }
}

/** Takes blocks back that were not reported on for a while: how many of their permits were spent cannot be known. */
function reclaiming(lane: PermitEngine): PermitEngine {
  const blocks = new Map<string, { gen: number; outstanding: number; heardMs: number }>();
  const patienceMs = 120;
  const reclaim = (ask: SubjectAsk): SubjectAsk => {
    const block = blocks.get(ask.subject);
    if (block === undefined || performance.now() - block.heardMs < patienceMs) return ask;
    return { ...ask, gen: block.gen, returned: ask.returned + block.outstanding };
  };
  return {
    async exchange(asks) {
      const results = await lane.exchange(asks.map(reclaim));
      results.forEach((result, i) => {
        const { subject: keyId } = asks[i] as SubjectAsk;
        if (result.outcome === "settled") blocks.set(keyId, { ...result, heardMs: performance.now() });
      });
      return results;
    },
  };
}

/** Sends a return again whose answer was lost, without a number that tells the ledger so. */
function repeating(random: SeededRandom): (lane: PermitEngine) => PermitEngine {
  return (lane) => ({
    async exchange(asks) {
      const returns = asks.filter(({ returned }) => returned > 0 && random.chance(1 / 2));
      await lane.exchange(returns.map((ask) => ({ ...ask, waiting: [], spent: 0 })));
      return lane.exchange(asks);
    },
  });
}

/** Settles by the asking replica's clock. */
function byOwnClock(clock: ReplicaClock): (lane: PermitEngine, coordinator: number) => PermitEngine {
  return (lane, coordinator) => ({
    exchange(asks) {
      clock.offsetMs = (coordinator - 1) * hourMs;
      try {
        return lane.exchange(asks);
      } finally {
        clock.offsetMs = 0;
      }
    },
  });
}

/** Gives permits back a second time, through another coordinator, when the first did not answer. */
function returningTwice(random: SeededRandom): NonNullable<HarnessOptions["channel"]> {
  const way = lossyWay(random);
  return (own, others) => {
    const lossy = way(own);
    return {
      ...lossy,
      exchange: (keyId, ask) =>
        lossy.exchange(keyId, ask).catch(async (error: unknown) => {
          if (ask.returned > 0) await others[0]?.exchange(keyId, { ...ask, waiting: [], spent: 0 });
          throw error;
        }),
    };
  };
}

const random = new SeededRandom(7);
const skewed = (replica: number): Clock => ({
  ...systemClock,
  nowMs: () => systemClock.nowMs() + (replica - 1) * hourMs,
});
const replicaClock = new ReplicaClock();

type Case = { name: string; clock?: Clock; options: Partial<HarnessOptions>; demand?: readonly KeyDemand[] };
const right: Case[] = [
  { name: "as it is", options: {} },
  { name: "with a way that loses answers", options: { channel: lossyWay(random) } },
  { name: "with replicas whose clocks are an hour off", options: { channel: lossyWay(random), clock: skewed } },
  { name: "with costs", options: {}, demand: costly },
  { name: "with costs and a way that loses answers", options: { channel: lossyWay(random) }, demand: costly },
];
const broken: Case[] = [
  { name: "takes blocks back after a time", options: { channel: lossyWay(random), engine: reclaiming } },
  { name: "applies a repeated return twice", options: { channel: lossyWay(random), engine: repeating(random) } },
  { name: "goes by the replicas' clocks", clock: replicaClock, options: { engine: byOwnClock(replicaClock) } },
  { name: "sends a return again through another coordinator", options: { channel: returningTwice(random) } },
];

/** Asks for a while, and on until that has been enough: a busy machine shows less in the same time. */
async function runOn({ clock = systemClock, options, demand = keys }: Case, isEnough: (book: StrictBook) => boolean) {
  const store = createMemoryStore(clock);
  const harness = await StrictHarness.start({ store, rules: demand, replicas: 3, timeoutMs, ...options });
  const load = new StrictLoad(demand, harness.replicas, 1000);
  await load.run(sized(2000, 3500), () => isEnough(load.book));
  return load.book;
}

// At once, since each has a store of its own and mostly waits.
describe.concurrent("the check of strict limits", () => {
  it.each(right)("finds nothing wrong $name", async (right) => {
    const book = await runOn(right, ({ figures }) => figures.windows > keys.length * 2);
    console.log(right.name, JSON.stringify(book.figures));
    expect(book.problems()).toEqual([]);
    // Where no message is lost, demand of cost 1 fills every window, whatever else is asked for.
    if (right.options.channel === undefined) expect(book.short()).toEqual([]);
    if (right.options.channel === undefined) expect(book.counts.unavailable).toBe(0);
  });

  it.each(broken)("catches a limiter that $name", async (broken) => {
    const book = await runOn(broken, (book) => book.problems().length > 0);
    console.log(broken.name, JSON.stringify(book.figures), book.problems().slice(0, 3));
    expect(book.problems()).not.toEqual([]);
  });
});
