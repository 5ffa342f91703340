import { Redis } from "ioredis";
import { describe, expect, it, vi } from "vitest";
import { Secret } from "../../src/domain/secret.ts";
import { startTestServer, type TestServer } from "../support/in-process-server.ts";
import { rawClient } from "../support/raw-client.ts";
import { readMetric } from "../support/read-metric.ts";
import { RedisReplica, soon } from "../support/redis-replica.ts";
import type { RedisServer } from "../support/redis-server.ts";
import { atTestEnd } from "../support/test-end.ts";
import { hasRedis, startTestRedis } from "../support/test-redis.ts";

const password = "a-passw0rd-that-is-long-enough";
/** Those that ask for the password. */
const secured = new Set<RedisServer>();
const authority = (server: RedisServer) => `127.0.0.1:${server.port}`;

/** Waits until Redis has been tried again so often: what is logged with each try would be logged as often. */
async function triedAgain(server: RedisServer, times: number): Promise<void> {
  const watcher = plainClient(server);
  const tries = async () => Number(/total_connections_received:(\d+)/.exec(await watcher.info("stats"))?.[1]);
  const before = await tries();
  await vi.waitFor(async () => expect(await tries()).toBeGreaterThanOrEqual(before + times), soon);
}

function gaugeShows({ internalPort }: TestServer, wanted: number): Promise<void> {
  return vi.waitFor(
    async () => expect(await readMetric(internalPort, "latchkey_rate_limit_sync_up")).toBe(wanted),
    soon,
  );
}

function plainClient(server: RedisServer): Redis {
  const redis = new Redis({ port: server.port, ...(secured.has(server) && { password }) });
  atTestEnd(() => redis.disconnect());
  return redis;
}

// At once, since each has a Redis of its own and mostly waits.
describe.runIf(hasRedis).concurrent("a Redis that answers with errors", () => {
  it.each([
    ["a wrong password", "WRONGPASS", (server: RedisServer) => `redis://:${password}x@${authority(server)}`],
    ["no password", "NOAUTH", (server: RedisServer) => `redis://${authority(server)}`],
  ])("because of %s counts as away, and one line of each kind says why", async (_, reason, url) => {
    const server = await startTestRedis({ requirepass: password });
    secured.add(server);
    const replica = new RedisReplica(url(server), "a");
    await vi.waitFor(() => expect(replica.logged.windows).toHaveLength(1), soon);
    await triedAgain(server, 6);
    expect([replica.hub.isReachable, replica.changes.isUp]).toEqual([false, false]);
    expect(replica.logged.windows).toEqual([`Redis refuses: ${reason}`]);
    // There are two connections: one for publishing, one for subscribing.
    expect(replica.logged.changes).toEqual([`Redis refuses: ${reason}`, `Redis refuses: ${reason}`]);
    expect(replica.logText.join()).not.toContain(password);
    // With the right one, in the meantime: the tests above are about the password.
    await new RedisReplica(`redis://:${password}@${authority(server)}`, "b").isUp(true);
  });

  it("because it is full counts as away for windows, and is used again when it is not", async () => {
    const server = await startTestRedis();
    const [a, b] = [new RedisReplica(server.url(), "a"), new RedisReplica(server.url(), "b")];
    for (const replica of [a, b]) await replica.isUp(true);
    await a.tell(3, "k");
    await server.command("CONFIG SET maxmemory 1");
    await expect(a.tell(4, "k")).rejects.toThrow(/^OOM/);
    expect([a.hub.isReachable, a.hub.isWhole]).toEqual([false, false]);
    await triedAgain(server, 3);
    expect(a.logged.windows).toEqual(["Redis refuses: OOM"]);
    // Without a window to report, too.
    await expect(b.tell(1)).rejects.toThrow(/^OOM/);
    // It can still carry messages.
    await a.changes.broadcast({ kind: "key", keyId: "key_1", digests: ["d"] });
    await vi.waitFor(() => expect(b.heard).toContainEqual({ kind: "key", keyId: "key_1", digests: ["d"] }), soon);
    expect([a.changes.isUp, a.logged.changes]).toEqual([true, []]);

    await server.command("CONFIG SET maxmemory 0");
    for (const replica of [a, b]) await replica.isUp(true);
    expect(a.logged.windows).toEqual(["Redis refuses: OOM", "Redis is back"]);
    await a.tell(4, "k");
    expect(await b.tell(1, "k")).toMatchObject([{ others: 4, replicas: 2 }]);
  });

  it("because another one took its place counts as away, until it is in its place again", async () => {
    const server = await startTestRedis();
    const a = new RedisReplica(server.url(), "a");
    await a.isUp(true);
    await server.command("REPLICAOF 127.0.0.1 1");
    await expect(a.tell(1, "k")).rejects.toThrow(/^READONLY/);
    await a.isUp(false);
    await server.command("REPLICAOF NO ONE");
    await a.isUp(true);
    expect(a.logged.windows).toEqual(["Redis refuses: READONLY", "Redis is back"]);
  });

  it("because it still reads its data from disk counts as away, and says so", async () => {
    const server = await startTestRedis({
      rdbcompression: "no",
      "key-load-delay": "100000",
      "loading-process-events-interval-bytes": "1024",
    });
    for (let i = 0; i < 100; i++) await server.command(`SET k${i} ${"x".repeat(4000)}`);
    await server.command("SAVE");
    await server.restart();
    const a = new RedisReplica(server.url(), "a");
    await vi.waitFor(() => expect(a.logged.windows).toContain("Redis is away: LOADING"), soon);
    await server.command("CONFIG SET key-load-delay 0");
    await a.isUp(true);
    expect(a.logged.windows.at(-1)).toBe("Redis is back");
  });

  it("because this user may not do what is needed counts as away", async () => {
    const server = await startTestRedis();
    await server.command(`ACL SETUSER reader on >${password} ~* &* +@read +@connection +info +subscribe +exists`);
    const a = new RedisReplica(`redis://reader:${password}@${authority(server)}`, "a");
    await vi.waitFor(() => expect(a.logged.windows).toEqual(["Redis refuses: NOPERM"]), soon);
    // It may subscribe but not publish: its own heartbeats never come, and other replicas miss its changes.
    await vi.waitFor(
      () => expect(a.logged.changes.sort()).toEqual(["Redis is away: no heartbeat", "Redis refuses: NOPERM"]),
      soon,
    );
    await triedAgain(server, 3);
    expect([a.hub.isReachable, a.changes.isUp, a.heard]).toEqual([false, false, []]);
    expect(a.logged.windows).toEqual(["Redis refuses: NOPERM"]);
    expect(a.logged.changes).toHaveLength(2);
  });
});

describe.runIf(hasRedis).concurrent("a server on a Redis that answers with errors", () => {
  it("counts by itself, says so by a gauge and by one line, and is in step again afterwards", async () => {
    const redis = await startTestRedis();
    const server = await startTestServer({ settings: { redisUrl: new Secret(redis.url()) } });
    const client = rawClient(server).keys;
    const gauge = (wanted: number) => gaugeShows(server, wanted);
    const lines = () => server.logLines.filter((line) => line.includes("Redis") || line.includes("windows"));
    await gauge(1);
    await redis.command("CONFIG SET maxmemory 1");
    const { key } = await client.createKey({ apiId: "api", ratelimit: { limit: 20, duration: 60_000 } });
    const codes = [];
    for (let i = 0; i < 25; i++) codes.push((await client.verifyKey({ key })).code);
    expect(codes.filter((code) => code === "VALID")).toHaveLength(20);
    await gauge(0);
    await triedAgain(redis, 3);
    expect(lines().map((line) => JSON.parse(line))).toMatchObject([
      {
        ...{ level: "warn", msg: "Redis refuses", purpose: "windows", reason: "OOM" },
        server: expect.stringMatching(/^127\.0\.0\.1:\d+$/),
      },
    ]);
    await redis.command("CONFIG SET maxmemory 0");
    await gauge(1);
    // Reports that could not be sent were not dropped.
    const plain = plainClient(redis);
    await vi.waitFor(async () => {
      const [name = ""] = await plain.keys("latchkey:window:*");
      const { gen: _, ...counts } = await plain.hgetall(name);
      expect(Object.values(counts)).toEqual(["20"]);
    }, soon);
  });

  it("says so where single windows are refused, until none is", async () => {
    const redis = await startTestRedis();
    const server = await startTestServer({ settings: { redisUrl: new Secret(redis.url()) } });
    const client = rawClient(server).keys;
    const gauge = (wanted: number) => gaugeShows(server, wanted);
    const ratelimit = { limit: 20, duration: 60_000 };
    const [bad, good] = await Promise.all([1, 2].map(() => client.createKey({ apiId: "api", ratelimit })));
    await gauge(1);
    await redis.command(`SET latchkey:window:${bad?.keyId} x`);
    for (const { key } of [bad, good] as { key: string }[]) await client.verifyKey({ key });
    await gauge(0);
    const failures = () => readMetric(server.internalPort, 'latchkey_rate_limit_windows_synced_total{event="failed"}');
    const before = await failures();
    await vi.waitFor(async () => expect(await failures()).toBeGreaterThan(before + 3), soon);
    expect(await redis.command(`EXISTS latchkey:window:${good?.keyId}`)).toBe(":1\r\n");
    await redis.command(`DEL latchkey:window:${bad?.keyId}`);
    await gauge(1);
    const lines = server.logLines.filter((line) => line.includes("windows")).map((line) => JSON.parse(line));
    expect(lines).toMatchObject([
      { level: "warn", reason: "WRONGTYPE" },
      { level: "info", msg: "all rate-limit windows are told to the other replicas again" },
    ]);
  });
});
