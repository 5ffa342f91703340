import { setTimeout as delay } from "node:timers/promises";
import { Redis } from "ioredis";
import { describe, expect, it, vi } from "vitest";
import { systemClock } from "../../src/ambient/clock.ts";
import { createLog } from "../../src/ambient/log.ts";
import { createMetrics } from "../../src/ambient/metrics.ts";
import { RedisChanges } from "../../src/ratelimit/redis/redis-changes.ts";
import type { Change } from "../../src/store/changes.ts";
import { isDeep, sized } from "../support/deep.ts";
import { FaultyProxy } from "../support/faulty-proxy.ts";
import { redisAccess } from "../support/redis-access.ts";
import { RedisReplica } from "../support/redis-replica.ts";
import type { RedisServer } from "../support/redis-server.ts";
import { atTestEnd } from "../support/test-end.ts";
import { createRedisDatabase, hasRedis, startTestRedis } from "../support/test-redis.ts";

const change: Change = { kind: "key", keyId: "key_1", digests: ["d1", "d2"] };
/** A Redis that is away is noticed in this time. */
const noticedMs = sized(60_000, 2500);
/** Bounds a wait for something that comes by itself. */
const soon = { timeout: 60_000, interval: 10 };

/** A replica that hears. */
function join(url: string, replica: string) {
  const heard: Change[] = [];
  const events: string[] = [];
  const changes = new RedisChanges({
    access: redisAccess(url),
    replica,
    clock: systemClock,
    log: createLog("error", () => {}),
    metrics: { ...createMetrics(), keyChange: (event) => void events.push(event) },
    onChange: (one) => heard.push(one),
  });
  atTestEnd(() => changes.close());
  return { changes, heard, events };
}

type Replica = ReturnType<typeof join>;

async function joinAll(url: string, ...names: string[]): Promise<Replica[]> {
  const replicas = names.map((name) => join(url, name));
  await allUp(replicas);
  return replicas;
}

async function allUp(replicas: readonly Replica[]): Promise<void> {
  for (const { changes } of replicas) await vi.waitFor(() => expect(changes.isUp).toBe(true), soon);
}

/** Publishes in the channel of the database that the URL names. */
async function publish(url: string, message: string): Promise<void> {
  const redis = new Redis(url);
  atTestEnd(() => redis.disconnect());
  await redis.publish(`latchkey:key-changes:${new URL(url).pathname.slice(1)}`, message);
}

if (!isDeep) {
  describe.runIf(hasRedis)("changes over Redis", () => {
    it("are not up before the first connection", async () => {
      const replica = join(await createRedisDatabase(), "a");
      expect(replica.changes.isUp).toBe(false);
      await allUp([replica]);
      expect(replica.heard).toEqual([]);
    });

    it.each<[string, Change]>([
      ["with the digests", change],
      ["without them", { kind: "key", keyId: "key_2", digests: undefined }],
      ["of a key that has none", { kind: "key", keyId: "key_3", digests: [] }],
      ["of root keys", { kind: "rootKeys" }],
      ["of imports", { kind: "imports" }],
    ])("are heard by all others and not by the one that made them, %s", async (_, made) => {
      const [a, b, c] = (await joinAll(await createRedisDatabase(), "a", "b", "c")) as [Replica, Replica, Replica];
      await a.changes.broadcast(made);
      for (const { heard } of [b, c]) await vi.waitFor(() => expect(heard).toEqual([made]), soon);
      // A later message on the same channel has arrived, so its own message would have arrived too.
      await b.changes.broadcast(change);
      await vi.waitFor(() => expect(a.heard).toEqual([change]), soon);
      expect([a.events, c.events.slice(0, 1)]).toEqual([["announced", "heard"], ["heard"]]);
    });

    it("do not count as silent after a pause of this process, in which it sent no heartbeat", async () => {
      const replica = new RedisReplica(await createRedisDatabase(), "a");
      await replica.isUp(true);
      for (let pauses = 0; pauses < 3; pauses++) {
        const untilMs = performance.now() + 1200;
        while (performance.now() < untilMs);
        await delay(50);
      }
      expect(replica.logged.changes).not.toContain("Redis is away: no heartbeat");
    });

    it("do not reach replicas that use another database of the same Redis", async () => {
      const [ours, theirs] = [await createRedisDatabase(), await createRedisDatabase()];
      const [a, b, c] = [join(ours, "a"), join(ours, "b"), join(theirs, "c")];
      await allUp([a, b, c]);
      await a.changes.broadcast(change);
      await vi.waitFor(() => expect(b.heard).toEqual([change]), soon);
      // A later message on their channel has arrived, so the first one would have arrived too.
      const other: Change = { kind: "key", keyId: "key_2", digests: [] };
      const d = join(theirs, "d");
      await allUp([d]);
      await d.changes.broadcast(other);
      await vi.waitFor(() => expect(c.heard).toEqual([other]), soon);
      expect(b.heard).toEqual([change]);
    });

    it.each([
      ["nothing", ""],
      ["no JSON", "{"],
      ["null", "null"],
      ["a number", "5"],
      ["an object without a key", "{}"],
      ["a list", "[1]"],
      ["a key that is no text", '{"from":"z","change":{"kind":"key","keyId":7}}'],
      ["digests that are no list", '{"from":"z","change":{"kind":"key","keyId":"k","digests":5}}'],
      ["a digest that is no text", '{"from":"z","change":{"kind":"key","keyId":"k","digests":[1]}}'],
      ["no sender", '{"change":{"kind":"rootKeys"}}'],
      ["no change", '{"from":"z"}'],
      ["a change of another kind", '{"from":"z","change":{"kind":"toString","keyId":"k"}}'],
    ])("are ignored if they cannot be understood: %s", async (_, message) => {
      const url = await createRedisDatabase();
      const [a, b] = (await joinAll(url, "a", "b")) as [Replica, Replica];
      await publish(url, message);
      // What comes after it on the same path has arrived, so it has too.
      await b.changes.broadcast(change);
      await vi.waitFor(() => expect(a.heard).toEqual([change]), soon);
      expect(a.changes.isUp).toBe(true);
    });
  });
}

// At once, since each has a Redis of its own and mostly waits.
describe.runIf(hasRedis).concurrent("while Redis is away", () => {
  it.each([
    ["says nothing", (server: RedisServer) => server.pause(), (server: RedisServer) => server.resume()],
    ["was killed", (server: RedisServer) => server.kill(), (server: RedisServer) => server.restart()],
  ])("because it %s, isUp says so; when it is back, changes are heard again", async (_, leave, comeBack) => {
    const server = await startTestRedis();
    const replicas = await joinAll(server.url(), "a", "b");
    const [a, b] = replicas as [Replica, Replica];
    await leave(server);
    for (const { changes } of replicas) {
      await vi.waitFor(() => expect(changes.isUp).toBe(false), { ...soon, timeout: noticedMs });
    }
    await comeBack(server);
    await allUp(replicas);
    await vi.waitFor(async () => {
      await a.changes.broadcast(change);
      expect(b.heard).toContainEqual(change);
    }, soon);
  });

  it("a change is not kept, in little time, and is counted: the change feed tells it", async () => {
    const server = await startTestRedis();
    const [a] = (await joinAll(server.url(), "a")) as [Replica];
    await server.kill();
    const startedMs = performance.now();
    for (let i = 0; i < 5; i++) await a.changes.broadcast(change);
    expect(performance.now() - startedMs).toBeLessThan(sized(60_000, 1500));
    expect(a.events).toEqual(Array.from({ length: 5 }, () => "unsent"));
  });

  if (!isDeep) {
    it("a link that loses everything and never closes is given up", async () => {
      const server = await startTestRedis();
      const link = await FaultyProxy.start(server.port);
      const [a, b] = [join(`redis://127.0.0.1:${link.port}`, "a"), join(server.url(), "b")];
      await allUp([a, b]);
      link.abandonAll();
      await vi.waitFor(() => expect(a.changes.isUp).toBe(false), soon);
      await allUp([a]);
      await vi.waitFor(async () => {
        await a.changes.broadcast(change);
        expect(b.heard).toContainEqual(change);
      }, soon);
    });
  }
});

if (isDeep) {
  describe.runIf(hasRedis)("changes over Redis, in time,", () => {
    it("stay up without any change: a replica hears its own heartbeats", async () => {
      const [a] = (await joinAll(await createRedisDatabase(), "a")) as [Replica];
      // Longer than silence is put up with.
      const untilMs = performance.now() + 1500;
      while (performance.now() < untilMs) {
        expect(a.changes.isUp).toBe(true);
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
      expect(a.heard).toEqual([]);
    });
  });
}
