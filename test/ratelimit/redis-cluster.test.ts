import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { Secret } from "../../src/domain/secret.ts";
import type { KeysClient } from "../../src/sdk/index.ts";
import { isDeep, sized } from "../support/deep.ts";
import { startTestServer, type TestServer } from "../support/in-process-server.ts";
import { rawClient } from "../support/raw-client.ts";
import { readMetric } from "../support/read-metric.ts";
import { expectOk, idOf, RedisCluster } from "../support/redis-cluster.ts";
import { RedisReplica, soon } from "../support/redis-replica.ts";
import type { RedisServer } from "../support/redis-server.ts";
import { createTestDatabase, hasPostgres } from "../support/test-database.ts";
import { hasRedis } from "../support/test-redis.ts";

const channel = "latchkey:key-changes";
const limit = 100;
const windowOf = (keyId: string) => `latchkey:window:${keyId}`;

describe.runIf(hasRedis)("a Redis Cluster", () => {
  let cluster: RedisCluster;
  beforeAll(async () => {
    cluster = await RedisCluster.start(channel);
  });
  afterAll(() => cluster?.remove());

  /** A name that begins like this, of a key whose window is with the same master as that of the other, or is not. */
  function keyIdAt(start: string, master: (port: number) => boolean): string {
    for (let i = 0; ; i++) if (master(cluster.masterOf(windowOf(`${start}${i}`)).port)) return `${start}${i}`;
  }

  async function keyOnEachMaster(client: KeysClient) {
    const found = new Map<RedisServer, { key: string; master: RedisServer; window: string }>();
    while (found.size < cluster.masters.length) {
      const { key, keyId } = await client.createKey({ apiId: "api", ratelimit: { limit, duration: 60_000 } });
      const window = windowOf(keyId);
      const master = cluster.masterOf(window);
      found.set(master, { key, master, window });
    }
    return [...found.values()];
  }

  if (!isDeep) {
    it("has windows on all its masters, whatever they are called, and replicas learn of each other's", async () => {
      const [a, b] = [new RedisReplica(cluster.url, "a"), new RedisReplica(cluster.url, "b")];
      for (const replica of [a, b]) await replica.isUp(true);
      const marks = ["", "ü", "鍵", "🔑"];
      const keyIds = Array.from({ length: 300 }, (_, i) => `spread-${marks[i % 4]}${i}`);
      expect(await a.tell(3, ...keyIds)).toHaveLength(300);
      const news = await b.tell(4, ...keyIds);
      expect(news.map((told) => told?.others)).toEqual(keyIds.map(() => 3));
      for (const master of cluster.masters) {
        expect(Number((await master.command("DBSIZE")).slice(1))).toBeGreaterThan(50);
      }
      expect([a.logged, b.logged]).toEqual([
        { windows: [], changes: [] },
        { windows: [], changes: [] },
      ]);
    });

    it("carries changes of keys", async () => {
      const [a, b] = [new RedisReplica(cluster.url, "a"), new RedisReplica(cluster.url, "b")];
      for (const replica of [a, b]) await replica.isUp(true);
      await a.changes.broadcast({ kind: "key", keyId: "key_1", digests: ["d"] });
      await vi.waitFor(() => expect(b.heard).toEqual([{ kind: "key", keyId: "key_1", digests: ["d"] }]), soon);
    });

    it.each([true, false])(
      "that is taken for one server says MOVED, and a line says that (epoch there: %s)",
      async (isThere) => {
        const home = cluster.masterOf("latchkey:windows-epoch").port;
        const node = cluster.masters.find(({ port }) => (port === home) === isThere);
        const server = await startTestServer({ settings: { redisUrl: new Secret(`redis://127.0.0.1:${node?.port}`) } });
        const client = rawClient(server).keys;
        const codes = [];
        for (let i = 0; i < 20; i++) {
          const { key } = await client.createKey({ apiId: "api", ratelimit: { limit: 1, duration: 60_000 } });
          codes.push((await client.verifyKey({ key })).code);
        }
        expect(new Set(codes)).toEqual(new Set(["VALID"]));
        await gaugeIs(server, 0);
        const told = server.logLines.map((line) => JSON.parse(line)).filter(({ reason }) => reason === "MOVED");
        // Where the epoch's key is elsewhere, no window is sent; of changed keys it may be the right one.
        expect(told.filter(({ purpose }) => purpose !== "key-changes-sent")).toHaveLength(1);
      },
    );

    it("gives a slot to another master, and windows in it follow", async () => {
      const a = new RedisReplica(cluster.url, "a");
      await a.isUp(true);
      const [from, to] = [cluster.masters[0], cluster.masters[1]] as const;
      if (!from || !to) throw new Error("no masters");
      const keyId = keyIdAt("moving-", (port) => port === from.port);
      const slot = /:(\d+)/.exec(await from.command(`CLUSTER KEYSLOT ${windowOf(keyId)}`))?.[1];
      // A key of another test can be in the same slot: a slot that is not empty cannot be given away.
      const inSlot = await from.command(`CLUSTER GETKEYSINSLOT ${slot} 100`);
      for (const name of inSlot.split("\r\n").filter((line) => line !== "" && !/^[*$]/.test(line))) {
        await from.command(`DEL ${name}`);
      }
      for (const node of [to, from]) await expectOk(node, `CLUSTER SETSLOT ${slot} NODE ${await idOf(to)}`);
      // The first is refused, and shows that the slot is elsewhere.
      expect(await a.tell(5, keyId)).toEqual([undefined]);
      await vi.waitFor(async () => expect(await a.tell(5, keyId)).toMatchObject([{ counted: true }]), soon);
      expect(await to.command(`EXISTS ${windowOf(keyId)}`)).toBe(":1\r\n");
      expect(a.logged.windows).toEqual([]);
    });
  }

  it.runIf(hasPostgres)(
    `keeps three replicas in step on every master${sized("", ": hardly more than the limit passes")}`,
    async () => {
      const databaseUrl = new Secret(await createTestDatabase());
      const settings = { databaseUrl, redisUrl: new Secret(cluster.url) };
      const servers = await Promise.all([1, 2, 3].map(() => startTestServer({ settings })));
      for (const server of servers) await gaugeIs(server, 1);
      const clients = servers.map((server) => rawClient(server).keys);
      const keys = await keyOnEachMaster(clients[0] as KeysClient);
      const admitted = keys.map(() => 0);
      /** Uses a key until it is refused, the more slowly the longer that takes, and waits until all know that it is used up. */
      const useUp = async (client: KeysClient, index: number) => {
        const { key, master, window } = keys[index] as (typeof keys)[number];
        const isFirst = admitted[index] === 0;
        let isRefused = false;
        for (let uses = 0; uses < limit && !isRefused; uses++) {
          isRefused = (await client.verifyKey({ key })).code !== "VALID";
          if (!isRefused) admitted[index] = (admitted[index] as number) + 1;
          // The first replica has let as many pass, and this one must learn of it.
          if (!isFirst) await delay(uses < limit / 2 ? sized(20, 0) : 1000);
        }
        expect(isRefused).toBe(!isFirst);
        await vi.waitFor(async () => expect(await master.command(`HVALS ${window}`)).toContain(`\n${limit}\r`), soon);
      };
      for (const client of clients) await Promise.all(keys.map((_, index) => useUp(client, index)));
      console.log(`${admitted.join(", ")} of ${3 * limit} passed, with a limit of ${limit} on 3 replicas`);
      for (const count of admitted) {
        expect(count).toBeGreaterThanOrEqual(limit);
        // Each may let a few pass before it has heard of the others.
        if (isDeep) expect(count).toBeLessThan(1.3 * limit);
      }
    },
  );

  if (!isDeep) {
    // The last: the cluster is another one afterwards.
    it("is found again after a master was killed and its replica took over, without anything forgotten", async () => {
      const [a, b] = [new RedisReplica(cluster.url, "a"), new RedisReplica(cluster.url, "b")];
      for (const replica of [a, b]) await replica.isUp(true);
      const gone = cluster.masterOf(channel);
      const [lost, kept] = [keyIdAt("x", (port) => port === gone.port), keyIdAt("y", (port) => port !== gone.port)];
      const before = await a.hub.exchange([]);
      await a.tell(3, lost, kept);
      // Its replica does not take over before the test has seen what is missing without it.
      await gone.kill();
      await a.isUp(false);
      expect(a.hub.isReachable).toBe(true);
      // Those of other masters go on.
      expect(await b.tell(1, lost, kept)).toMatchObject([undefined, { others: 3 }]);
      await expectOk(cluster.replica, "CONFIG SET cluster-replica-no-failover no");
      for (const replica of [a, b]) await replica.isUp(true);
      // A server that may have missed reports gets all of them again.
      expect((await a.hub.exchange([])).epoch).not.toBe(before.epoch);
      await a.tell(4, lost, kept);
      expect(await b.tell(1, lost, kept)).toMatchObject([{ others: 4 }, { others: 4 }]);
      await a.changes.broadcast({ kind: "key", keyId: "key_2", digests: ["d"] });
      await vi.waitFor(() => expect(b.heard).toEqual([{ kind: "key", keyId: "key_2", digests: ["d"] }]), soon);
      await vi.waitFor(() => expect(a.logged.windows.at(-1)).toBe("Redis is back"), soon);
      expect(a.logged.windows).toContain("Redis is away: another server took its place");
    });
  }
});

function gaugeIs(server: TestServer, wanted: number): Promise<void> {
  const gauge = "latchkey_rate_limit_sync_up";
  return vi.waitFor(async () => expect(await readMetric(server.internalPort, gauge)).toBe(wanted), soon);
}
