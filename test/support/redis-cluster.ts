import { slotCount, slotOf } from "../../src/domain/redis-slots.ts";
import { freePort } from "./local-server.ts";
import { RedisServer } from "./redis-server.ts";

/** A Redis Cluster of the test's own: three masters, and one replica, of the master that serves the slot of `replicated`. */
export class RedisCluster {
  readonly masters: readonly RedisServer[];
  readonly replica: RedisServer;

  private constructor(masters: readonly RedisServer[], replica: RedisServer) {
    this.masters = masters;
    this.replica = replica;
  }

  static async start(replicated: string): Promise<RedisCluster> {
    const servers = await Promise.all([0, 1, 2, 3].map(startNode));
    const [replica, ...masters] = servers as [RedisServer, ...RedisServer[]];
    const cluster = new RedisCluster(masters, replica);
    await cluster.#form(slotOf(replicated));
    return cluster;
  }

  /** Names one node only: the others are to be found. */
  get url(): string {
    return `redis+cluster://127.0.0.1:${this.masters[0]?.port}`;
  }

  /** The master that serves a key, as it was at the start. */
  masterOf(key: string): RedisServer {
    return this.masters[Math.floor(slotOf(key) / shareOfSlots)] as RedisServer;
  }

  async remove(): Promise<void> {
    await Promise.all([...this.masters, this.replica].map((server) => server.remove()));
  }

  async #form(replicatedSlot: number): Promise<void> {
    for (const [i, master] of this.masters.entries()) {
      await expectOk(master, `CLUSTER SET-CONFIG-EPOCH ${i + 1}`);
      const last = i === this.masters.length - 1 ? slotCount - 1 : (i + 1) * shareOfSlots - 1;
      await expectOk(master, `CLUSTER ADDSLOTSRANGE ${i * shareOfSlots} ${last}`);
    }
    const [first, ...others] = this.masters as [RedisServer, ...RedisServer[]];
    for (const other of [...others, this.replica])
      await expectOk(other, `CLUSTER MEET 127.0.0.1 ${first.port} ${await busPortOf(first)}`);
    const all = [...this.masters, this.replica];
    for (const server of all) await answers(server, "CLUSTER INFO", /cluster_state:ok[\s\S]*cluster_known_nodes:4/);
    const id = await idOf(this.masters[Math.floor(replicatedSlot / shareOfSlots)] as RedisServer);
    await expectOk(this.replica, `CLUSTER REPLICATE ${id}`);
    await answers(this.replica, "INFO replication", /master_link_status:up/);
  }
}

/** Of each master; the last has those that are left over too. */
const shareOfSlots = Math.floor(slotCount / 3);

async function startNode(): Promise<RedisServer> {
  return RedisServer.start({
    "cluster-enabled": "yes",
    "cluster-port": String(await freePort()),
    "cluster-node-timeout": "1000",
    "cluster-replica-validity-factor": "0",
    // Until a test wants it: on a busy machine a master can be late.
    "cluster-replica-no-failover": "yes",
    "repl-diskless-sync-delay": "0",
  });
}

export async function idOf(server: RedisServer): Promise<string> {
  return (await server.command("CLUSTER MYID")).split("\r\n")[1] ?? "";
}

async function busPortOf(server: RedisServer): Promise<string> {
  return /@(\d+)/.exec(await server.command("CLUSTER NODES"))?.[1] ?? "";
}

export async function expectOk(server: RedisServer, line: string): Promise<void> {
  const reply = await server.command(line);
  if (!reply.startsWith("+OK")) throw new Error(`${line}: ${reply}`);
}

/** Asks until the reply looks like this. */
export async function answers(
  server: { command(line: string): Promise<string> },
  line: string,
  wanted: RegExp,
): Promise<void> {
  const deadline = performance.now() + 30_000;
  for (;;) {
    const reply = await server.command(line).catch((error: Error) => error.message);
    if (wanted.test(reply)) return;
    if (performance.now() > deadline) throw new Error(`${line}: ${reply}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
