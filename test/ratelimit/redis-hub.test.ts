import { Redis } from "ioredis";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { createLog } from "../../src/ambient/log.ts";
import { createSystemRandom } from "../../src/ambient/random.ts";
import type { WindowReport } from "../../src/domain/shared-window.ts";
import { MemoryHub, type SubjectReport, type WindowHub } from "../../src/ratelimit/local/window-hub.ts";
import { RedisWindowHub } from "../../src/ratelimit/redis/redis-window-hub.ts";
import { SeededRandom } from "../domain/seeded-random.ts";
import { isDeep, sized } from "../support/deep.ts";
import { redisAccess } from "../support/redis-access.ts";
import { createRedisDatabase, hasRedis, startTestRedis } from "../support/test-redis.ts";

const seeds = Array.from({ length: 20 }, (_, i) => i + 1);
/** Longer than the tests take by so much that the time they take changes no decision. */
const durationMs = 2_000_000;
/** Bounds a wait for something that comes by itself. */
const soon = { timeout: 60_000, interval: 10 };

async function connect(url: string): Promise<RedisWindowHub & { readonly logged: string[] }> {
  const logged: string[] = [];
  const log = createLog("debug", (line) => void logged.push(JSON.parse(line).msg));
  const hub = new RedisWindowHub({
    access: redisAccess(url),
    log,
    random: createSystemRandom(),
  });
  onTestFinished(() => hub.close());
  await vi.waitFor(() => expect(hub.isReachable).toBe(true), soon);
  return Object.assign(hub, { logged });
}

function report(changes: Partial<WindowReport> = {}): WindowReport {
  return { replica: "a", gen: 1, count: 3, endsInMs: durationMs, durationMs, previousGen: 0, ...changes };
}

async function tell(hub: WindowHub, changes: Partial<WindowReport> = {}, subject = "k") {
  const { news, epoch } = await hub.exchange([{ subject, report: report(changes) }]);
  return { ...news[0], epoch };
}

if (!isDeep) {
  describe.runIf(hasRedis)("windows that meet in Redis", () => {
    it("are merged as in memory, with any reports", async () => {
      const hub = await connect(await createRedisDatabase());
      for (const seed of seeds) expect(await firstDifference(seed, hub, memoryHub())).toBeUndefined();
    });

    it.each([
      ["add up what is reported", ({ replica, count }) => ({ replica: `${replica} ${count}` })],
      ["go on in a window that is over", () => ({ previousGen: 0 })],
      ["count a window before the open one in it", () => ({ durationMs: 10 * durationMs })],
      ["count in the window that was reported last", ({ gen }) => ({ previousGen: gen === 1 ? 2 : 1 })],
    ] satisfies [string, (report: WindowReport) => Partial<WindowReport>][])(
      "would be noticed to %s",
      async (_, mistake) => {
        const hub = await connect(await createRedisDatabase());
        const differences = [];
        for (const seed of seeds) differences.push(await firstDifference(seed, hub, memoryHub(mistake)));
        expect(differences.filter((difference) => difference !== undefined)).not.toHaveLength(0);
      },
    );

    it("stay as they are when a report is repeated", async () => {
      const hub = await connect(await createRedisDatabase());
      await tell(hub, { count: 3 });
      const once = await tell(hub, { replica: "b", count: 4 });
      for (let i = 0; i < 5; i++) await tell(hub, { count: 3 });
      const again = await tell(hub, { replica: "b", count: 4 });
      expect({ ...again, endsInMs: 0 }).toEqual({ ...once, endsInMs: 0 });
      expect(again).toMatchObject({ others: 3, replicas: 2 });
    });

    it("keep names of windows apart up to the largest there are", async () => {
      const hub = await connect(await createRedisDatabase());
      const gen = 2 ** 52 - 1;
      expect(await tell(hub, { gen })).toMatchObject({ gen });
      expect(await tell(hub, { gen: gen - 1, replica: "b" })).toMatchObject({ gen });
      expect(await tell(hub, { gen: gen - 2, previousGen: gen, replica: "b" })).toMatchObject({
        gen: gen - 2,
        others: 0,
      });
    });

    it("end by Redis' own clock and leave nothing behind", async () => {
      const url = await createRedisDatabase();
      const hub = await connect(url);
      expect(await tell(hub, { endsInMs: 150, durationMs: 150 })).toMatchObject({ gen: 1 });
      const later = { replica: "b", gen: 2, count: 1, endsInMs: 100, durationMs: 150 };
      expect(await tell(hub, later)).toMatchObject({ gen: 1, others: 3 });
      await vi.waitFor(async () => expect(await tell(hub, later)).toMatchObject({ gen: 2, others: 0 }), soon);
      const redis = plainClient(url);
      await vi.waitFor(async () => expect(await redis.keys("latchkey:window:*")).toEqual([]), soon);
    });

    it("belong to an epoch that all replicas see and that changes only when Redis forgets", async () => {
      const server = await startTestRedis();
      const [a, b] = [await connect(server.url()), await connect(server.url())];
      const [first, second] = await Promise.all([tell(a), tell(b, { replica: "b" })]);
      expect(second.epoch).toBe(first.epoch);
      expect((await a.exchange([])).epoch).toBe(first.epoch);
      await server.flush();
      const flushed = await Promise.all([a.exchange([]), b.exchange([])]);
      expect(flushed[0].epoch).not.toBe(first.epoch);
      expect(flushed[1].epoch).toBe(flushed[0].epoch);
      await server.restart();
      const restarted = await vi.waitFor(() => a.exchange([]), soon);
      expect([first.epoch, flushed[0].epoch]).not.toContain(restarted.epoch);
      expect(await vi.waitFor(() => tell(b, { replica: "b" }), soon)).toMatchObject({
        epoch: restarted.epoch,
        others: 0,
      });
    });

    it("are merged again after Redis has lost the script; until then reports have no effect", async () => {
      const server = await startTestRedis();
      const hub = await connect(server.url());
      await tell(hub);
      await plainClient(server.url()).script("FLUSH");
      const { news } = await hub.exchange([{ subject: "k", report: report({ replica: "b" }) }]);
      expect(news).toEqual([undefined]);
      await vi.waitFor(async () => expect(await tell(hub, { replica: "b" })).toMatchObject({ others: 3 }), soon);
    });

    it("lose one report, not the batch, where Redis has something else under a window's name", async () => {
      const url = await createRedisDatabase();
      const hub = await connect(url);
      await plainClient(url).set("latchkey:window:bad", "x");
      const { news, refusal } = await hub.exchange(["k", "bad", "l"].map((subject) => ({ subject, report: report() })));
      expect(refusal).toBe("WRONGTYPE");
      expect(news.map((told) => told?.counted)).toEqual([true, undefined, true]);
      expect(hub.isReachable).toBe(true);
      expect(hub.logged).toEqual([]);
    });
  });
}

describe.runIf(hasRedis)("a Redis that says nothing", () => {
  it("fails an exchange after a second, is known to be away, delays no verification, and comes back by itself", async () => {
    const server = await startTestRedis();
    const hub = await connect(server.url());
    await tell(hub);
    server.pause();
    const startedMs = performance.now();
    await expect(tell(hub)).rejects.toThrow();
    expect(performance.now() - startedMs).toBeLessThan(sized(60_000, 1500));
    expect(hub.isReachable).toBe(false);
    // Each fails at once: none waits for Redis to come back.
    const floodedMs = performance.now();
    const outcomes = await Promise.allSettled(Array.from({ length: 2000 }, () => tell(hub)));
    expect(outcomes.filter(({ status }) => status === "fulfilled")).toEqual([]);
    expect(performance.now() - floodedMs).toBeLessThan(sized(60_000, 1000));
    server.resume();
    await vi.waitFor(() => expect(hub.isReachable).toBe(true), soon);
    expect(await tell(hub, { replica: "b" })).toMatchObject({ others: 3 });
    expect(hub.logged).toEqual(["Redis is away", "Redis is back"]);
  });

  it("that was killed is known to be away at once and found again when it is back, empty", async () => {
    const server = await startTestRedis();
    const hub = await connect(server.url());
    await tell(hub);
    await server.kill();
    await vi.waitFor(() => expect(hub.isReachable).toBe(false), { ...soon, timeout: sized(60_000, 1000) });
    await expect(tell(hub)).rejects.toThrow();
    await server.restart();
    await vi.waitFor(() => expect(hub.isReachable).toBe(true), soon);
    expect(await tell(hub, { replica: "b" })).toMatchObject({ others: 0, replicas: 1 });
  });
});

/** Sends the same reports to both and compares the news; answers the first difference in words. */
async function firstDifference(seed: number, redis: WindowHub, memory: WindowHub): Promise<string | undefined> {
  const random = new SeededRandom(seed);
  for (let batch = 0; batch < 15; batch++) {
    const reports = Array.from({ length: random.integer(1, 6) }, () => anyReport(random));
    // Keys of each seed's own: the windows of the seeds before are still open in Redis.
    const kept = reports.map((one) => ({ ...one, subject: `${seed}-${one.subject}` }));
    const [actual, expected] = await Promise.all([redis.exchange(kept), memory.exchange(kept)]);
    for (const [i, told] of expected.news.entries()) {
      const [a, b] = [actual.news[i], told].map((news) => news && { ...news, endsInMs: nearest(news.endsInMs) });
      if (JSON.stringify(a) === JSON.stringify(b)) continue;
      return `seed ${seed}, ${JSON.stringify(kept[i])}: ${JSON.stringify(a)} instead of ${JSON.stringify(b)}`;
    }
  }
  return undefined;
}

function anyReport(random: SeededRandom): SubjectReport {
  return {
    subject: random.pick(["k", "l"]),
    report: report({
      replica: random.pick(["a", "b", "c"]),
      gen: random.integer(1, 5),
      count: random.integer(0, 50),
      endsInMs: random.pick([0.1, 0.3, 0.4, 0.7, 1]) * durationMs,
      previousGen: random.chance(0.2) ? random.integer(1, 5) : 0,
    }),
  };
}

/** In whole minutes, so that the time of the test itself does not matter. */
function nearest(endsInMs: number): number {
  return Math.round(endsInMs / 60_000);
}

function memoryHub(mistake: (report: WindowReport) => Partial<WindowReport> = () => ({})): WindowHub {
  const inner = new MemoryHub({ nowMs: () => 0, windowsMax: 1000, freeStandingMax: 0 });
  return {
    isReachable: true,
    isWhole: true,
    exchange: (reports) =>
      inner.exchange(reports.map(({ subject, report }) => ({ subject, report: { ...report, ...mistake(report) } }))),
  };
}

function plainClient(url: string): Redis {
  const redis = new Redis(url);
  onTestFinished(() => redis.disconnect());
  return redis;
}
