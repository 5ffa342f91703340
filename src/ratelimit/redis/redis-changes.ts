import type { Redis } from "ioredis";
import type { Ambient } from "../../ambient/ambient.ts";
import { withTimeout } from "../../ambient/with-timeout.ts";
import { Deadline } from "../../domain/deadlines.ts";
import { slotOf } from "../../domain/redis-slots.ts";
import type { Change, ChangeAudience } from "../../store/changes.ts";
import { locateServer, type RedisAccess, WrongServer } from "./locate-server.ts";
import { checkServer, RedisConnection } from "./redis-connection.ts";

const heartbeatMs = 250;
/** After so many heartbeats in a row that did not arrive, a replica may be missing the messages of others. */
const silentBeatsMax = 4;
const firstHeartbeatMs = 1000;

export interface RedisChangesOptions extends Pick<Ambient, "clock" | "log" | "metrics"> {
  readonly access: RedisAccess;
  readonly replica: string;
  /** A change made by another replica. */
  readonly onChange: (change: Change) => void;
}

/**
 * Carries messages about changes over Redis' publish and subscribe. A message that gets lost does no harm: the change
 * feed brings the change to every replica, a little later. To know whether messages arrive, each replica listens for
 * heartbeats that it sends to itself on the same path. When they stop, `isUp` says so, and the connection is renewed.
 *
 * In a cluster all replicas publish and subscribe at the node that serves the channel's name as a key. Any node would
 * carry messages to all others, but one that is cut off goes on doing so among those that are cut off with it.
 */
export class RedisChanges implements ChangeAudience {
  readonly #options: RedisChangesOptions;
  readonly #publisher: RedisConnection;
  readonly #subscriber: RedisConnection;
  #subscribed: Redis | undefined;
  readonly #heartbeat: NodeJS.Timeout;
  readonly #channel: string;
  readonly #heartbeatChannel: string;
  /**
   * Heartbeats that were due since the last message. Counted instead of measuring the silence: a pause of this process,
   * in which it sends none, must not look like a Redis that is silent.
   */
  #silentBeats = 0;
  /** Called with each heartbeat that arrives. */
  #onHeartbeat: () => void = () => {};
  #isBeating = false;

  constructor(options: RedisChangesOptions) {
    this.#options = options;
    this.#channel = channelIn(options.access.servers.database);
    this.#heartbeatChannel = `${this.#channel}:heartbeat:${options.replica}`;
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
        this.#subscribed = redis;
        redis.on("message", (from: string, message: string) => {
          // Messages on a connection that was given up do not show that the new one works.
          if (this.#subscribed === redis) this.#onMessage(from, message);
        });
        await redis.subscribe(this.#channel, this.#heartbeatChannel);
        const received = new Promise<void>((resolve) => {
          this.#onHeartbeat = resolve;
        });
        void this.#beat();
        const deadline = new Deadline(options.clock, firstHeartbeatMs);
        await withTimeout(received, deadline, () => new WrongServer("no heartbeat"));
      },
    });
    this.#heartbeat = setInterval(() => void this.#beat(), heartbeatMs).unref();
  }

  /** Whether changes that others make arrive immediately. */
  get isUp(): boolean {
    return this.#subscriber.isUp && this.#silentBeats <= silentBeatsMax;
  }

  async broadcast(change: Change): Promise<void> {
    const message: Message = { from: this.#options.replica, change };
    try {
      await this.#publisher.redis.publish(this.#channel, JSON.stringify(message));
      this.#options.metrics.keyChange("announced");
    } catch (error) {
      this.#publisher.renew(error as Error);
      this.#options.metrics.keyChange("unsent");
    }
  }

  close(): void {
    clearInterval(this.#heartbeat);
    this.#publisher.close();
    this.#subscriber.close();
  }

  async #beat(): Promise<void> {
    this.#silentBeats++;
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

  #onMessage(from: string, message: string): void {
    this.#silentBeats = 0;
    if (from !== this.#channel) {
      this.#onHeartbeat();
      return;
    }
    const received = parse(message);
    if (received === undefined || received.from === this.#options.replica) return;
    this.#options.metrics.keyChange("heard");
    this.#options.onChange(received.change);
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

/** Undefined for a message that we do not understand. It is ignored: the change feed has the change too. */
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
