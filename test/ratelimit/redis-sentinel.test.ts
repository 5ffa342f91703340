import { chownSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { LocalServer, runAs } from "../support/local-server.ts";
import { redisBinary } from "../support/redis-binary.ts";
import { answers } from "../support/redis-cluster.ts";
import { RedisReplica, soon } from "../support/redis-replica.ts";
import { RedisServer, redisCommand } from "../support/redis-server.ts";
import { hasRedis } from "../support/test-redis.ts";

const passwords = { master: "the-masters-passw0rd", own: "the-sentinels-passw0rd" };

describe.runIf(hasRedis)("a master that a Sentinel knows", () => {
  let master: RedisServer;
  let replica: RedisServer;
  let sentinel: RedisSentinel;
  beforeAll(async () => {
    ({ master, replica } = await startReplicatedRedis(passwords.master));
    sentinel = await RedisSentinel.start(master, passwords);
  });
  afterAll(() => Promise.all([master, replica, sentinel].map((server) => server?.remove())));

  function url({ name = RedisSentinel.masterName, own = passwords.own } = {}): string {
    // One that is not there comes first.
    return `redis+sentinel://:${passwords.master}@127.0.0.1:1,127.0.0.1:${sentinel.port}/${name}?sentinelPassword=${own}`;
  }

  it.each([
    ["a name that it does not know", { name: "other" }, "Redis is away: Sentinel does not know the master"],
    ["a password that is not its own", { own: passwords.master }, "Redis refuses: WRONGPASS"],
  ])("is not found by %s, and a line says so", async (_, wrong, line) => {
    const a = new RedisReplica(url(wrong), "a");
    // In turns with the one that is not there.
    await vi.waitFor(() => expect(a.logged.windows).toContain(line), soon);
    expect(a.hub.isReachable).toBe(false);
    expect(new Set(a.logged.windows).size).toBe(a.logged.windows.length);
  });

  // The last: they have changed places afterwards.
  it("is found, and after it was killed the one that took its place", async () => {
    const [a, b] = [new RedisReplica(url(), "a"), new RedisReplica(url(), "b")];
    for (const one of [a, b]) await one.isUp(true);
    await a.tell(3, "k");
    expect(await b.tell(1, "k")).toMatchObject([{ others: 3 }]);
    await a.changes.broadcast({ kind: "key", keyId: "key_1", digests: ["d"] });
    await vi.waitFor(() => expect(b.heard).toEqual([{ kind: "key", keyId: "key_1", digests: ["d"] }]), soon);
    const before = await a.hub.exchange([]);

    await master.kill();
    await a.isUp(false);
    for (const one of [a, b]) await one.isUp(true);
    expect((await a.hub.exchange([])).epoch).not.toBe(before.epoch);
    await a.tell(4, "k");
    expect(await b.tell(1, "k")).toMatchObject([{ others: 4 }]);
    await a.changes.broadcast({ kind: "key", keyId: "key_2", digests: ["d"] });
    await vi.waitFor(() => expect(b.heard.slice(1)).toEqual([{ kind: "key", keyId: "key_2", digests: ["d"] }]), soon);
    for (const { logged, logText } of [a, b]) {
      expect(logged.windows.at(-1)).toBe("Redis is back");
      for (const password of Object.values(passwords)) expect(logText.join()).not.toContain(password);
    }
    expect(await replica.command(`AUTH ${passwords.master}\r\nROLE`)).toContain("master");
  });
});

/** One Sentinel that watches a master, which it knows by this name, and puts its replica in the place of one that is gone. */
class RedisSentinel extends LocalServer {
  static readonly masterName = "main";

  private constructor() {
    super("sentinel");
  }

  /** Resolves when it knows the master's replica. */
  static async start(master: RedisServer, passwords: { master: string; own: string }): Promise<RedisSentinel> {
    const sentinel = new RedisSentinel();
    const { masterName } = RedisSentinel;
    const file = join(sentinel.folder, "sentinel.conf");
    const prepare = () => {
      const lines = [
        "bind 127.0.0.1",
        `port ${sentinel.port}`,
        `dir ${sentinel.folder}`,
        `requirepass ${passwords.own}`,
        `sentinel monitor ${masterName} 127.0.0.1 ${master.port} 1`,
        `sentinel auth-pass ${masterName} ${passwords.master}`,
        `sentinel down-after-milliseconds ${masterName} 500`,
        `sentinel failover-timeout ${masterName} 3000`,
      ];
      writeFileSync(file, `${lines.join("\n")}\n`);
      // It writes down there what it has found out.
      if (runAs.uid !== undefined) chownSync(file, runAs.uid, runAs.gid);
      return [file, "--sentinel"];
    };
    const ping = () => redisCommand(sentinel.port, "PING");
    await sentinel.launch(redisBinary(), prepare, ping, "redis-server");
    const command = (line: string) => redisCommand(sentinel.port, `AUTH ${passwords.own}\r\n${line}`);
    await answers({ command }, `SENTINEL REPLICAS ${masterName}`, /flags/);
    return sentinel;
  }
}

/** A master and its replica, both with this password. */
async function startReplicatedRedis(password: string): Promise<{ master: RedisServer; replica: RedisServer }> {
  const settings = { requirepass: password, masterauth: password, "repl-diskless-sync-delay": "0" };
  const master = await RedisServer.start(settings);
  const replica = await RedisServer.start({ ...settings, replicaof: `127.0.0.1 ${master.port}` });
  const command = (line: string) => replica.command(`AUTH ${password}\r\n${line}`);
  await answers({ command }, "INFO replication", /master_link_status:up/);
  return { master, replica };
}
