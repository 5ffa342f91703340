import { chownSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { freePort, LocalServer, runAs } from "./local-server.ts";
import { redisBinary } from "./redis-binary.ts";
import { answers } from "./redis-cluster.ts";
import { RedisServer, redisCommand } from "./redis-server.ts";

/** One Sentinel that watches a master, which it knows by this name, and puts its replica in the place of one that is gone. */
export class RedisSentinel extends LocalServer {
  static readonly masterName = "main";

  private constructor(port: number) {
    super("sentinel", port);
  }

  /** Resolves when it knows the master's replica. */
  static async start(master: RedisServer, passwords: { master: string; own: string }): Promise<RedisSentinel> {
    const sentinel = new RedisSentinel(await freePort());
    const { masterName } = RedisSentinel;
    const file = join(sentinel.folder, "sentinel.conf");
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
    const ping = () => redisCommand(sentinel.port, "PING");
    await sentinel.launch(redisBinary(), [file, "--sentinel"], ping, "redis-server");
    const command = (line: string) => redisCommand(sentinel.port, `AUTH ${passwords.own}\r\n${line}`);
    await answers({ command }, `SENTINEL REPLICAS ${masterName}`, /flags/);
    return sentinel;
  }
}

/** A master and its replica, both with this password. */
export async function startReplicatedRedis(password: string): Promise<{ master: RedisServer; replica: RedisServer }> {
  const settings = { requirepass: password, masterauth: password, "repl-diskless-sync-delay": "0" };
  const master = await RedisServer.start(settings);
  const replica = await RedisServer.start({ ...settings, replicaof: `127.0.0.1 ${master.port}` });
  const command = (line: string) => replica.command(`AUTH ${password}\r\n${line}`);
  await answers({ command }, "INFO replication", /master_link_status:up/);
  return { master, replica };
}
