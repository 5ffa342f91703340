import type { Redis } from "ioredis";
import type { Ambient } from "../../ambient/ambient.ts";
import { slotOf } from "../../domain/redis-slots.ts";
import type { Change, ChangeAudience } from "../../store/changes.ts";
import { locateServer, type RedisAccess, WrongServer } from "./locate-server.ts";
import { checkServer, RedisConnection } from "./redis-connection.ts";

const heartbeatMs = 250;
/** Without a heartbeat of its own for this long, a replica may be missing what others say. */
const silenceMaxMs = 1000;

export interface RedisChangesOptions extends Pick<Ambient, "clock" | "log" | "metrics"> {
  readonly access: RedisAccess;
  readonly replica: string;
  /** A change made by another replica. */
  readonly onChange: (change: Change) => void;
}

/**
 * Carries messages about changes over Redis' publish and subscribe. A message that gets lost does no harm: the change
 * feed tells every replica of the change, a little later. To know whether messages arrive, each replica listens for
 * heartbeats that it sends to itself on the same path. When they stop, `isUp` says so, and the connection is renewed.
 *
 * In a cluster all replicas publish and subscribe at the node that serves the channel's name as a key. Any node would
 * carry messages to all others, but one that is cut off goes on doing so among those that are cut off with it.
 */
export class RedisChanges implements ChangeAudience {
  readonly #options: RedisChangesOptions;
  readonly #publisher: RedisConnection;
  readonly #subscriber: RedisConnection;
  #hearing: Redis | undefined;
  readonly #heartbeat: NodeJS.Timeout;
  readonly #channel: string;
  readonly #heartbeatChannel: string;
  #heardAtMs: number;
  /** Who waits for the next heartbeat to be heard. */
  #onHeartbeat: () => void = () => {};
  #isBeating = false;

  constructor(options: RedisChangesOptions) {
    this.#options = options;
    this.#channel = channelIn(options.access.servers.database);
    this.#heartbeatChannel = `${this.#channel}:heartbeat:${options.replica}`;
    this.#heardAtMs = Number.NEGATIVE_INFINITY;
    const locate = () => locateServer(options.access, slotOf(this.#channel));
    this.#publisher = new RedisConnection({
      ...options,
      locate: locate(),
      purpose: "key-changes-sent",
      onConnect: (redis) => this.#sendHeartbeat(redis),
    });
    this.#subscriber = new RedisConnection({
      ...options,
      locate: locate(),
      purpose: "key-changes-heard",
      onConnect: async (redis) => {
        this.#hearing = redis;
        redis.on("message", (from: string, message: string) => {
          // One that was given up may still say something, which is no sign of the new one's life.
          if (this.#hearing === redis) this.#hear(from, message);
        });
        await redis.subscribe(this.#channel, this.#heartbeatChannel);
        const heard = this.#nextHeartbeat();
        void this.#beat();
        await heard;
      },
    });
    this.#heartbeat = setInterval(() => void this.#beat(), heartbeatMs).unref();
  }

  /** Whether changes that others make are heard of at once. */
  get isUp(): boolean {
    return this.#subscriber.isUp && this.#options.clock.monotonicMs() - this.#heardAtMs <= silenceMaxMs;
  }

  async broadcast(change: Change): Promise<void> {
    if (await this.#publish({ from: this.#options.replica, change })) {
      this.#options.metrics.keyChange("announced");
      return;
    }
    this.#options.metrics.keyChange("unsent");
  }

  close(): void {
    clearInterval(this.#heartbeat);
    this.#publisher.close();
    this.#subscriber.close();
  }

  async #publish(message: Message): Promise<boolean> {
    try {
      await this.#publisher.redis.publish(this.#channel, JSON.stringify(message));
      return true;
    } catch (error) {
      this.#publisher.renew(error as Error);
      return false;
    }
  }

  async #beat(): Promise<void> {
    if (this.#subscriber.isUp && !this.isUp) this.#subscriber.renew(new WrongServer("no heartbeat"));
    // One at a time: a slow link would fill up.
    if (this.#isBeating || !this.#publisher.isUp) return;
    this.#isBeating = true;
    try {
      await this.#sendHeartbeat(this.#publisher.redis);
    } catch (error) {
      this.#publisher.renew(error as Error);
    } finally {
      this.#isBeating = false;
    }
  }

  /**
   * First it is checked that this is still the place where all replicas meet. A node that no longer serves the channel's
   * name, or is cut off from its cluster, refuses to read it; what is published at a replica stays there.
   */
  async #sendHeartbeat(redis: Redis): Promise<void> {
    await redis.exists(this.#channel);
    await checkServer(redis);
    await redis.publish(this.#heartbeatChannel, "");
  }

  /** Rejects if none is heard for as long as silence may last. */
  #nextHeartbeat(): Promise<void> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new WrongServer("no heartbeat")), silenceMaxMs).unref();
      this.#onHeartbeat = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  #hear(from: string, message: string): void {
    this.#heardAtMs = this.#options.clock.monotonicMs();
    if (from !== this.#channel) {
      this.#onHeartbeat();
      return;
    }
    const heard = parse(message);
    if (heard === undefined || heard.from === this.#options.replica) return;
    this.#options.metrics.keyChange("heard");
    this.#options.onChange(heard.change);
  }
}

/** Redis delivers messages whatever database their connection uses, so the name of the channel says which it is. */
function channelIn(database: number): string {
  return database === 0 ? "latchkey:key-changes" : `latchkey:key-changes:${database}`;
}

interface Message {
  readonly from: string;
  readonly change: Change;
}

/** Undefined for a message that we do not understand. It is ignored: the change feed tells what has changed. */
function parse(message: string): Message | undefined {
  try {
    const { from, change } = JSON.parse(message) as Message;
    const known = knownChange(change);
    return typeof from === "string" && known !== undefined ? { from, change: known } : undefined;
  } catch {
    return undefined;
  }
}

/** Other clients of Redis can publish anything, and handling a change must never throw. */
function knownChange(change: Change): Change | undefined {
  if (change.kind === "rootKeys" || change.kind === "imports") return { kind: change.kind };
  if (change.kind === "owner") {
    const { kind, ownerId, isNew } = change;
    return typeof ownerId === "string" && typeof isNew === "boolean" ? { kind, ownerId, isNew } : undefined;
  }
  const { kind, keyId, digests } = change;
  const areDigests = digests === undefined || (Array.isArray(digests) && digests.every((it) => typeof it === "string"));
  return kind === "key" && typeof keyId === "string" && areDigests ? { kind, keyId, digests } : undefined;
}
