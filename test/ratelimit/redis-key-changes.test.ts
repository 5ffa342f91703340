import { Redis } from "ioredis";
import { describe, expect, it, vi } from "vitest";
import { systemClock } from "../../src/ambient/clock.ts";
import { createLog } from "../../src/ambient/log.ts";
import { createMetrics } from "../../src/ambient/metrics.ts";
import { RedisKeyChanges } from "../../src/ratelimit/redis/redis-key-changes.ts";
import type { KeyChange } from "../../src/store/key-changes.ts";
import { FaultyProxy } from "../support/faulty-proxy.ts";
import { redisAccess } from "../support/redis-access.ts";
import type { RedisServer } from "../support/redis-server.ts";
import { atTestEnd } from "../support/test-end.ts";
import { hasRedis, startTestRedis } from "../support/test-redis.ts";

const channel = "latchkey:key-changes";
const change: KeyChange = { keyId: "key_1", digests: ["d1", "d2"] };
/** Bounds a wait for something that comes by itself. */
const soon = { timeout: 20_000, interval: 10 };

/** A replica that hears; `heard` holds changes, and "gap" where everything was to be forgotten. */
function join(server: { readonly port: number }, replica: string) {
  const heard: (KeyChange | "gap")[] = [];
  const events: string[] = [];
  const changes = new RedisKeyChanges({
    access: redisAccess(`redis://127.0.0.1:${server.port}`),
    replica,
    clock: systemClock,
    log: createLog("error", () => {}),
    metrics: { ...createMetrics(), keyChange: (event) => void events.push(event) },
    onChange: (one) => heard.push(one),
    onGap: () => heard.push("gap"),
  });
  atTestEnd(() => changes.close());
  return { changes, heard, events };
}

type Replica = ReturnType<typeof join>;

async function joinAll(server: RedisServer, ...names: string[]): Promise<Replica[]> {
  const replicas = names.map((name) => join(server, name));
  await allUp(replicas);
  for (const { heard } of replicas) heard.length = 0;
  return replicas;
}

async function allUp(replicas: readonly Replica[]): Promise<void> {
  for (const { changes } of replicas) await vi.waitFor(() => expect(changes.isUp).toBe(true), soon);
}

function plainClient(server: RedisServer): Redis {
  const redis = new Redis(server.url());
  atTestEnd(() => redis.disconnect());
  return redis;
}

describe.runIf(hasRedis)("changes of keys over Redis", () => {
  it("are not up before the first connection, which begins with a gap", async () => {
    const replica = join(await startTestRedis(), "a");
    expect(replica.changes.isUp).toBe(false);
    await allUp([replica]);
    expect(replica.heard).toEqual(["gap"]);
  });

  it.each([
    ["with the digests", change],
    ["without them", { keyId: "key_2", digests: undefined }],
    ["of a key that has none", { keyId: "key_3", digests: [] }],
  ])("are heard by all others and not by the one that made them, %s", async (_, made) => {
    const [a, b, c] = (await joinAll(await startTestRedis(), "a", "b", "c")) as [Replica, Replica, Replica];
    await a.changes.broadcast(made);
    for (const { heard } of [b, c]) await vi.waitFor(() => expect(heard).toEqual([made]), soon);
    // A later message on the same channel has arrived, so its own message would have arrived too.
    await b.changes.broadcast(change);
    await vi.waitFor(() => expect(a.heard).toEqual([change]), soon);
    expect([a.events, c.events.slice(0, 1)]).toEqual([["announced", "heard"], ["heard"]]);
  });

  it.each([
    ["nothing", ""],
    ["no JSON", "{"],
    ["null", "null"],
    ["a number", "5"],
    ["an object without a key", "{}"],
    ["a list", "[1]"],
    ["a key that is no text", '{"from":"z","keyId":7}'],
    ["digests that are no list", '{"from":"z","keyId":"k","digests":5}'],
    ["a digest that is no text", '{"from":"z","keyId":"k","digests":[1]}'],
    ["no sender", '{"keyId":"k"}'],
  ])("mean a gap when they cannot be understood: %s", async (_, message) => {
    const server = await startTestRedis();
    const [a] = (await joinAll(server, "a")) as [Replica];
    await plainClient(server).publish(channel, message);
    await vi.waitFor(() => expect(a.heard).toEqual(["gap"]), soon);
    expect(a.changes.isUp).toBe(true);
  });

  // Again where the machine was busy: a process that stands still for a second is right to doubt its link.
  it("stay up without any change: a replica hears its own heartbeats", { retry: 2 }, async () => {
    const [a] = (await joinAll(await startTestRedis(), "a")) as [Replica];
    // Longer than silence is put up with.
    const untilMs = performance.now() + 1500;
    while (performance.now() < untilMs) {
      expect(a.changes.isUp).toBe(true);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    expect(a.heard).toEqual([]);
  });
});

// At once, since each has a Redis of its own and mostly waits.
describe.runIf(hasRedis).concurrent("while Redis is away", () => {
  it.each([
    ["says nothing", (server: RedisServer) => server.pause(), (server: RedisServer) => server.resume()],
    ["was killed", (server: RedisServer) => server.kill(), (server: RedisServer) => server.restart()],
  ])("because it %s, isUp says so; when it is back, everything counts as doubtful", async (_, leave, comeBack) => {
    const server = await startTestRedis();
    const replicas = await joinAll(server, "a", "b");
    await leave(server);
    for (const { changes } of replicas) {
      await vi.waitFor(() => expect(changes.isUp).toBe(false), { ...soon, timeout: 2500 });
    }
    // A link that only was slow, and gives everything in the end, is not given up before the next heartbeat.
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect(replicas.map(({ changes, heard }) => [changes.isUp, heard])).toEqual([
      [false, []],
      [false, []],
    ]);
    await comeBack(server);
    await allUp(replicas);
    for (const { heard } of replicas) expect(heard).toContain("gap");
  });

  it.each([10, 900, 1100])(
    "for %i ms, no change is missed: it is heard, or there is a gap after it",
    async (pauseMs) => {
      const server = await startTestRedis();
      const [a, b] = (await joinAll(server, "a", "b")) as [Replica, Replica];
      server.pause();
      const announced = a.changes.broadcast(change);
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
      server.resume();
      await announced;
      await vi.waitFor(() => expect(b.heard.length).toBeGreaterThan(0), soon);
    },
  );

  it("changes are kept, in little time, and sent when it is back", async () => {
    const server = await startTestRedis();
    const [a, b] = (await joinAll(server, "a", "b")) as [Replica, Replica];
    await server.kill();
    const startedMs = performance.now();
    const made = Array.from({ length: 5 }, (_, i) => ({ keyId: `key_${i}`, digests: [`d${i}`] }));
    for (const one of made) await a.changes.broadcast(one);
    expect(performance.now() - startedMs).toBeLessThan(1500);
    expect(a.events).toEqual(made.map(() => "unsent"));
    await server.restart();
    await vi.waitFor(() => expect(a.events.filter((event) => event === "announced")).toHaveLength(5), soon);
    // It has heard each of them, or there was a gap after it had been missed.
    await allUp([a, b]);
    expect(b.heard).toContain("gap");
  });

  it("changes reach a replica that never lost its link, after the one that made them has lost its own", async () => {
    const server = await startTestRedis();
    const [a, b] = (await joinAll(server, "a", "b")) as [Replica, Replica];
    const unsent = await announceWithoutLink(server, a, 3);
    await vi.waitFor(() => expect(b.heard).toEqual(unsent), soon);
  });

  it("a link that loses everything and never closes is given up, and what was announced into it is sent again", async () => {
    const server = await startTestRedis();
    const link = await FaultyProxy.start(server.port);
    const [a, b] = [join(link, "a"), join(server, "b")];
    await allUp([a, b]);
    b.heard.length = 0;
    link.abandonAll();
    await a.changes.broadcast(change);
    await vi.waitFor(() => expect(b.heard).toEqual([change]), { ...soon, timeout: 5000 });
    await allUp([a]);
  });

  it("more changes than are kept become one gap for all other replicas", async () => {
    const server = await startTestRedis();
    const [a, b] = (await joinAll(server, "a", "b")) as [Replica, Replica];
    const unsent = await announceWithoutLink(server, a, 1003);
    await vi.waitFor(() => expect(b.heard).toHaveLength(1001), soon);
    expect(b.heard).toEqual(["gap", ...unsent.slice(0, 1000)]);
    expect(a.heard).not.toContain("gap");
  });
});

/** Cuts the publisher's link alone, and announces so many changes before it has a new one. */
async function announceWithoutLink(server: RedisServer, from: Replica, times: number): Promise<KeyChange[]> {
  const redis = plainClient(server);
  const clients = String(await redis.client("LIST")).split("\n");
  const id = clients.filter((line) => line.includes("key-changes-sent")).map((line) => /id=(\d+)/.exec(line)?.[1]);
  // The first to connect is the one that was made first.
  await redis.client("KILL", "ID", Math.min(...id.map(Number)));
  const made = Array.from({ length: times }, (_, i) => ({ keyId: `key_${i}`, digests: [`d${i}`] }));
  await vi.waitFor(async () => {
    await from.changes.broadcast(made[0] as KeyChange);
    expect(from.events).toContain("unsent");
  }, soon);
  await Promise.all(made.slice(1).map((one) => from.changes.broadcast(one)));
  return made;
}
