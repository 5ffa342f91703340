import { Redis } from "ioredis";
import type { Log } from "../../ambient/log.ts";
import type { Secret } from "../../domain/secret.ts";

export interface RedisConnectionOptions {
  readonly url: Secret;
  /** What the connection is for, in the log and in Redis' list of clients. */
  readonly purpose: string;
  readonly log: Log;
  /** Called on every new connection, before it counts as up. What it throws costs the connection. */
  readonly onConnect: (redis: Redis) => Promise<void>;
}

/** A link is given up on after this long without an answer; Redis answers in a millisecond or not at all. */
export const redisTimeoutMs = 1000;
const retryMaxMs = 1000;

/**
 * One connection that comes back by itself. Nothing is queued while it is away, and nothing is sent twice: a command
 * whose reply was lost fails, and its sender decides.
 */
export class RedisConnection {
  readonly redis: Redis;
  readonly #options: RedisConnectionOptions;
  #isUp = false;
  #isTroubled = false;
  /** Given up and not closed yet: that takes a while where the other side says nothing. */
  #isGivenUp = false;
  #closed = false;

  constructor(options: RedisConnectionOptions) {
    this.#options = options;
    this.redis = new Redis(options.url.reveal(), {
      connectionName: `latchkey-${options.purpose}`,
      lazyConnect: true,
      enableOfflineQueue: false,
      autoResendUnfulfilledCommands: false,
      autoResubscribe: false,
      maxRetriesPerRequest: 0,
      commandTimeout: redisTimeoutMs,
      connectTimeout: redisTimeoutMs,
      retryStrategy: (tries) => Math.min(retryMaxMs, 50 * 2 ** Math.min(tries, 10)),
    });
    this.redis.on("ready", () => void this.#arrive());
    this.redis.on("close", () => this.#leave());
    // Without a listener an error would end the process. Its message may hold the address, so only its code is logged.
    this.redis.on("error", (error: NodeJS.ErrnoException) => this.#complain(error.code ?? error.name));
    // What goes wrong is told to the listeners above, and tried again.
    this.redis.connect().catch(() => {});
  }

  get isUp(): boolean {
    return this.#isUp;
  }

  /** Gives the connection up for a new one if that is what failed: a link can be dead for long before it closes. */
  suspect(error: Error): void {
    // What Redis answers, as that its memory is full, another connection would hear too; unless it may not write at all,
    // since another one writes in its place.
    if (error.name !== "ReplyError" || error.message.startsWith("READONLY")) this.renew(error.name);
  }

  /** Gives the connection up for a new one: what is under way on it fails. */
  renew(reason: string): void {
    if (this.#closed || this.#isGivenUp || this.redis.status !== "ready") return;
    this.#isGivenUp = true;
    this.#isUp = false;
    this.#complain(reason);
    this.redis.disconnect(true);
  }

  close(): void {
    this.#closed = true;
    this.#isUp = false;
    this.redis.disconnect();
  }

  async #arrive(): Promise<void> {
    try {
      await this.#options.onConnect(this.redis);
    } catch {
      this.renew("set-up failed");
      return;
    }
    if (this.#isGivenUp || this.redis.status !== "ready") return;
    this.#isUp = true;
    if (this.#isTroubled) this.#options.log.info("Redis is back", { purpose: this.#options.purpose });
    this.#isTroubled = false;
  }

  #leave(): void {
    this.#isUp = false;
    this.#isGivenUp = false;
    if (!this.#closed) this.#complain("connection closed");
  }

  /** Once per outage. */
  #complain(reason: string): void {
    if (this.#isTroubled || this.#closed) return;
    this.#isTroubled = true;
    this.#options.log.warn("Redis is away", { purpose: this.#options.purpose, reason });
  }
}
