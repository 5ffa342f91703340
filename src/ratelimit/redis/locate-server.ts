import { Redis, type RedisOptions } from "ioredis";
import { slotCount } from "../../domain/redis-slots.ts";
import type { RedisAddress, RedisServers } from "../../domain/redis-url.ts";

/** A connection is given up after this long without an answer; Redis answers in a millisecond or not at all. */
export const redisTimeoutMs = 1000;

export interface RedisAccess {
  readonly servers: RedisServers;
  /** Certificates that vouch for the servers, where those that Node trusts do not. */
  readonly ca: string | undefined;
}

/** Finds the server that a connection should lead to. Asked before every connection: after a failover it is another one. */
export type Locate = () => Promise<RedisAddress>;

/** Where the one server is, or the master, or the node of a cluster that serves this slot. */
export function locateServer(access: RedisAccess, slot: number): Locate {
  const { servers } = access;
  // From another one each time: one that answers wrongly must not be believed forever.
  let turn = 0;
  const addresses = () => rotate(servers.addresses, turn++);
  if (servers.kind === "sentinel") return () => askSentinels(access, addresses());
  if (servers.kind === "cluster") return async () => ownerOf(await readSlots(access, addresses()), slot);
  return async () => servers.addresses[0] as RedisAddress;
}

/**
 * A connection that nothing has been done with yet. It does not come back by itself, queues nothing while it is not
 * there and sends nothing twice: a command whose reply was lost fails, and its sender decides.
 */
export function createRedis(access: RedisAccess, address: RedisAddress, options: ExtraOptions): Redis {
  const { servers, ca } = access;
  const { user, password } = servers;
  const redis = new Redis({
    host: address.host,
    port: address.port,
    username: user,
    password: password?.reveal(),
    tls: servers.isTls ? { ca } : undefined,
    db: servers.database,
    lazyConnect: true,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    autoResubscribe: false,
    // Whether the server is good for us is checked by commands whose refusal says why.
    enableReadyCheck: false,
    maxRetriesPerRequest: 0,
    commandTimeout: redisTimeoutMs,
    connectTimeout: redisTimeoutMs,
    retryStrategy: () => null,
    ...options,
  });
  // Without a listener an error would end the process.
  redis.on("error", () => {});
  return redis;
}

type ExtraOptions = Pick<RedisOptions, "connectionName" | "username" | "password" | "db">;

/** Connects. Throws what went wrong: ioredis itself throws that the connection is closed, whatever the reason was. */
export async function connectRedis(redis: Redis): Promise<void> {
  let cause: Error | undefined;
  const keep = (error: Error) => {
    cause ??= error;
  };
  redis.on("error", keep);
  try {
    const connected = redis.connect();
    setImmediate(() => ignoreLaterErrors(redis));
    await connected;
  } catch (error) {
    throw cause ?? error;
  } finally {
    redis.off("error", keep);
  }
}

/**
 * ioredis listens for one error of its socket. Over TLS Node can emit a second one, for example if the connection was
 * given up during the handshake. Without a listener that would end the process.
 */
function ignoreLaterErrors({ stream }: { readonly stream?: Redis["stream"] }): void {
  stream?.on("error", () => {});
}

/** A server that is there and is not the one we need. */
export class WrongServer extends Error {
  override readonly name = "WrongServer";
}

/** A few words for the log. Messages are not for it: a server's can repeat what was sent, and Node's hold addresses. */
export function redisReason(error: Error): string {
  if (isReply(error)) return /^[A-Z]+(?=\s|$)/.exec(error.message)?.[0] ?? "ERR";
  if (error instanceof WrongServer || ioredisMessages.has(error.message)) return error.message;
  return (error as NodeJS.ErrnoException).code ?? error.name;
}

const ioredisMessages = new Set(["Command timed out", "Connection is closed."]);

/** Whether the server has answered, and the answer was an error. */
export function isReply(error: Error): boolean {
  return error.name === "ReplyError";
}

/** Which node serves each slot of a cluster. */
export type SlotOwners = readonly (RedisAddress | undefined)[];

/** Asks the nodes, one after the other, until one of them knows. */
export function readSlots(access: RedisAccess, nodes: readonly RedisAddress[]): Promise<SlotOwners> {
  return askAny(access, nodes, {}, async (redis, asked) => {
    const owners: (RedisAddress | undefined)[] = new Array(slotCount).fill(undefined);
    const ranges = (await redis.call("CLUSTER", "SLOTS").catch(explainNoCluster)) as SlotRange[];
    for (const [first, last, [host, port]] of ranges) {
      // A node that does not know its own address means the one it was asked at.
      const owner = { host: host && host !== "?" ? host : asked.host, port };
      for (let slot = first; slot <= last; slot++) owners[slot] = owner;
    }
    if (owners.every((owner) => owner === undefined)) throw new WrongServer("a node that is in no cluster");
    return owners;
  });
}

type SlotRange = readonly [first: number, last: number, master: readonly [host: string | null, port: number]];

function explainNoCluster(error: Error): never {
  throw error.message.includes("cluster support disabled") ? new WrongServer("not a cluster") : error;
}

function ownerOf(owners: SlotOwners, slot: number): RedisAddress {
  const owner = owners[slot];
  if (owner === undefined) throw new WrongServer("no node serves the slot");
  return owner;
}

function askSentinels(access: RedisAccess, addresses: readonly RedisAddress[]): Promise<RedisAddress> {
  const { masterName, sentinelUser, sentinelPassword } = access.servers;
  // Credentials in front of the hosts are the master's.
  const login = { username: sentinelUser, password: sentinelPassword?.reveal(), db: 0 };
  return askAny(access, addresses, login, async (redis) => {
    const master = (await redis.call("SENTINEL", "GET-MASTER-ADDR-BY-NAME", masterName)) as [string, string] | null;
    if (master === null) throw new WrongServer("Sentinel does not know the master");
    return { host: master[0], port: Number(master[1]) };
  });
}

/** The first answer. Throws the error of the last server if none has answered. */
async function askAny<Answer>(
  access: RedisAccess,
  addresses: readonly RedisAddress[],
  options: ExtraOptions,
  ask: (redis: Redis, address: RedisAddress) => Promise<Answer>,
): Promise<Answer> {
  let lastError: unknown;
  for (const address of addresses) {
    const redis = createRedis(access, address, { ...options, connectionName: "latchkey-locate" });
    try {
      await connectRedis(redis);
      return await ask(redis, address);
    } catch (error) {
      lastError = error;
    } finally {
      redis.disconnect();
    }
  }
  throw lastError;
}

export function rotate<Item>(items: readonly Item[], by: number): readonly Item[] {
  const start = by % items.length;
  return [...items.slice(start), ...items.slice(0, start)];
}
