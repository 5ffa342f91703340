import type { Clock } from "../../ambient/clock.ts";
import type { Log } from "../../ambient/log.ts";
import type { Metrics } from "../../ambient/metrics.ts";
import type { Secret } from "../../domain/secret.ts";
import type { KeyChange, KeyChanges } from "../../store/key-changes.ts";
import { RedisConnection } from "./redis-connection.ts";

const channel = "latchkey:key-changes";
const heartbeatMs = 250;
/** Without a heartbeat of its own for this long, a replica may be missing what others say. */
const silenceMaxMs = 1000;
/** Changes kept while they cannot be sent; beyond them everything is to be forgotten. */
const unsentMax = 1000;

export interface RedisKeyChangesOptions {
  readonly url: Secret;
  readonly replica: string;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
  /** Somebody else's change. */
  readonly onChange: (change: KeyChange) => void;
  /** Changes may have been missed: nothing remembered can be trusted. */
  readonly onGap: () => void;
}

/**
 * Carries word of changed keys over Redis' publish and subscribe, which forgets whom it does not reach. So each replica
 * listens for heartbeats that it sends to itself along the same way: while they come, nothing is missed; when they
 * stop, `isUp` says so; when the link is back, everything remembered counts as doubtful.
 */
export class RedisKeyChanges implements KeyChanges {
  readonly #options: RedisKeyChangesOptions;
  readonly #publisher: RedisConnection;
  readonly #subscriber: RedisConnection;
  readonly #heartbeat: NodeJS.Timeout;
  readonly #heartbeatChannel: string;
  #heardAtMs: number;
  #unsent: KeyChange[] = [];
  #isTooMuchUnsent = false;

  constructor(options: RedisKeyChangesOptions) {
    this.#options = options;
    this.#heartbeatChannel = `latchkey:heartbeat:${options.replica}`;
    this.#heardAtMs = Number.NEGATIVE_INFINITY;
    this.#publisher = new RedisConnection({
      ...options,
      purpose: "key-changes-sent",
      onConnect: async () => this.#sendUnsent(),
    });
    this.#subscriber = new RedisConnection({
      ...options,
      purpose: "key-changes-heard",
      onConnect: async (redis) => {
        await redis.subscribe(channel, this.#heartbeatChannel);
        this.#heardAtMs = options.clock.monotonicMs();
        options.onGap();
      },
    });
    this.#subscriber.redis.on("message", (from: string, message: string) => this.#hear(from, message));
    this.#heartbeat = setInterval(() => this.#beat(), heartbeatMs).unref();
  }

  /** Whether changes that others make are heard of at once. */
  get isUp(): boolean {
    return this.#subscriber.isUp && this.#options.clock.monotonicMs() - this.#heardAtMs <= silenceMaxMs;
  }

  async announce(change: KeyChange): Promise<void> {
    if (await this.#publish(channel, JSON.stringify({ ...change, from: this.#options.replica }))) {
      this.#options.metrics.keyChange("announced");
      return;
    }
    this.#options.metrics.keyChange("unsent");
    if (this.#unsent.length < unsentMax) this.#unsent.push(change);
    else this.#isTooMuchUnsent = true;
  }

  close(): void {
    clearInterval(this.#heartbeat);
    this.#publisher.close();
    this.#subscriber.close();
  }

  async #publish(to: string, message: string): Promise<boolean> {
    try {
      await this.#publisher.redis.publish(to, message);
      return true;
    } catch (error) {
      this.#publisher.suspect(error as Error);
      return false;
    }
  }

  async #sendUnsent(): Promise<void> {
    const changes = this.#unsent;
    const isTooMuch = this.#isTooMuchUnsent;
    this.#unsent = [];
    this.#isTooMuchUnsent = false;
    if (isTooMuch && !(await this.#publish(channel, JSON.stringify({ from: this.#options.replica })))) {
      this.#isTooMuchUnsent = true;
    }
    for (const change of changes) await this.announce(change);
  }

  #hear(from: string, message: string): void {
    this.#heardAtMs = this.#options.clock.monotonicMs();
    if (from !== channel) return;
    const heard = parse(message);
    if (heard?.from === this.#options.replica) return;
    this.#options.metrics.keyChange("heard");
    if (heard?.keyId === undefined) this.#options.onGap();
    else this.#options.onChange({ keyId: heard.keyId, digests: heard.digests });
  }

  #beat(): void {
    if (this.#subscriber.isUp && !this.isUp) this.#subscriber.renew("no heartbeat");
    void this.#publish(this.#heartbeatChannel, "");
  }
}

/** Without a key: any may have changed. */
interface Message {
  readonly from: string;
  readonly keyId?: string;
  readonly digests?: readonly string[];
}

/** Undefined for what no version of ours says: then nobody knows what was meant. */
function parse(message: string): Message | undefined {
  try {
    const heard = JSON.parse(message) as Message;
    return isMessage(heard) ? heard : undefined;
  } catch {
    return undefined;
  }
}

/** Anybody can publish in Redis, and what a replica does with a change must not fail. */
function isMessage({ from, keyId, digests }: Message): boolean {
  const areDigests = digests === undefined || (Array.isArray(digests) && digests.every((it) => typeof it === "string"));
  return typeof from === "string" && (keyId === undefined || typeof keyId === "string") && areDigests;
}
