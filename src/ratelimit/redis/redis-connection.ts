import type { Redis } from "ioredis";
import type { Log } from "../../ambient/log.ts";
import type { RedisAddress } from "../../domain/redis-url.ts";
import { connectRedis, createRedis, type Locate, type RedisAccess, redisReason, WrongServer } from "./locate-server.ts";
import { RedisTroubles } from "./redis-troubles.ts";

export interface RedisConnectionOptions {
  readonly access: RedisAccess;
  readonly locate: Locate;
  /** What the connection is for, in the log and in Redis' list of clients. */
  readonly purpose: string;
  readonly log: Log;
  /**
   * Sets a new connection up and proves that Redis does what we need of it. The connection counts as up afterwards;
   * what this throws costs the connection. `runId` is another one for every start of a server.
   */
  readonly onConnect: (redis: Redis, runId: string) => Promise<void>;
}

const retryMinMs = 100;
const retryMaxMs = 1000;
/** How often to check whether the connection still leads to the right server. */
const relocateMs = 5000;

/**
 * A connection that comes back by itself, to wherever the server is by then. A server that answers with errors counts as
 * away, as one that does not answer: each connection has to prove itself before it is up.
 */
export class RedisConnection {
  readonly #options: RedisConnectionOptions;
  #redis: Redis | undefined;
  #address: RedisAddress | undefined;
  #isUp = false;
  readonly #troubles: RedisTroubles;
  #tries = 0;
  #retry: NodeJS.Timeout | undefined;
  readonly #relocate: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(options: RedisConnectionOptions) {
    this.#options = options;
    this.#troubles = new RedisTroubles(options.log);
    if (options.access.servers.kind !== "single") {
      this.#relocate = setInterval(() => void this.#checkPlace(), relocateMs).unref();
    }
    void this.#connect();
  }

  get isUp(): boolean {
    return this.#isUp;
  }

  /** The connection that is up. Throws while there is none. */
  get redis(): Redis {
    if (this.#redis === undefined || !this.#isUp) throw new Error("Redis is away");
    return this.#redis;
  }

  /** Gives the connection up for a new one, because of this: what is under way on it fails. */
  renew(error: Error): void {
    if (this.#isUp) this.#giveUp(error);
  }

  close(): void {
    this.#closed = true;
    this.#isUp = false;
    clearTimeout(this.#retry);
    clearInterval(this.#relocate);
    this.#redis?.disconnect();
  }

  async #connect(): Promise<void> {
    const { access, locate, purpose, onConnect } = this.#options;
    let redis: Redis | undefined;
    try {
      this.#address = await locate();
      if (this.#closed) return;
      const created = createRedis(access, this.#address, { connectionName: `latchkey-${purpose}` });
      redis = created;
      this.#redis = created;
      await connectRedis(created);
      created.once("close", () => {
        if (this.#redis === created) this.#giveUp(new Error("Connection is closed."));
      });
      await onConnect(created, await checkServer(created));
      if (this.#redis === created && !this.#closed) this.#onConnected();
    } catch (error) {
      if (this.#redis === redis) this.#giveUp(error as Error);
    }
  }

  #onConnected(): void {
    this.#isUp = true;
    this.#tries = 0;
    this.#troubles.end("Redis is back", this.#fields());
  }

  #giveUp(error: Error): void {
    this.#isUp = false;
    // A link that is dead closes late: from here on its events are ignored.
    this.#redis?.disconnect();
    this.#redis = undefined;
    if (this.#closed) return;
    this.#troubles.warn(error, this.#fields());
    const delayMs = Math.min(retryMaxMs, retryMinMs * 2 ** Math.min(this.#tries++, 10));
    this.#retry = setTimeout(() => void this.#connect(), delayMs).unref();
  }

  /** A server that was cut off from its Sentinels or its cluster may go on answering, after another took its place. */
  async #checkPlace(): Promise<void> {
    const redis = this.#redis;
    const place = await this.#options.locate().catch(() => undefined);
    const isElsewhere = place?.host !== this.#address?.host || place?.port !== this.#address?.port;
    if (place && isElsewhere && redis === this.#redis) this.renew(new WrongServer("another server took its place"));
  }

  #fields() {
    const { purpose } = this.#options;
    if (this.#address === undefined) return { purpose };
    return { purpose, server: `${this.#address.host}:${this.#address.port}` };
  }
}

/** Answers the server's run id. Throws if it is not ready, or if what is written to it could be lost. */
export async function checkServer(redis: Redis): Promise<string> {
  const info = await readInfo(redis);
  checkInfo(info);
  return /^run_id:(\w+)/m.exec(info)?.[1] ?? "";
}

/** What the server reports about itself; empty if this user may not ask. Errors of later commands will show what is wrong. */
export function readInfo(redis: Redis): Promise<string> {
  return redis.info().catch((error: Error) => {
    if (redisReason(error) === "NOPERM") return "";
    throw error;
  });
}

/** Throws `WrongServer` if it is not ready, or if what is written to it could be lost. */
export function checkInfo(info: string): void {
  if (/^loading:1/m.test(info)) throw new WrongServer("LOADING");
  if (/^role:slave/m.test(info)) throw new WrongServer("READONLY");
}
