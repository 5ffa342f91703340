import type { Redis } from "ioredis";
import { sha1 } from "../../ambient/crypto.ts";
import type { Random } from "../../ambient/random.ts";
import type { WindowNews } from "../../domain/shared-window.ts";
import type { SubjectReport } from "../local/window-hub.ts";
import { redisReason } from "./locate-server.ts";
import { mergeScript } from "./merge-script.ts";
import { RedisConnection, type RedisConnectionOptions } from "./redis-connection.ts";

export interface RedisWindowNodeOptions extends Omit<RedisConnectionOptions, "purpose" | "onConnect"> {
  /** A key of this server that shows whether it has lost its data. */
  readonly epochKey: string;
  readonly random: Random;
  /** A window belongs to another server by now. */
  readonly onMoved: () => void;
}

export interface NodeAnswer {
  readonly news: readonly (WindowNews | undefined)[];
  /** Why some reports came to nothing. */
  readonly refusal: string | undefined;
}

const windowPrefix = "latchkey:window:";
const scriptDigest = sha1(mergeScript);

export function windowNameOf(subject: string): string {
  return windowPrefix + subject;
}

/** Windows in one Redis server. Everything there can be lost: it is a copy of what the replicas know. */
export class RedisWindowNode {
  readonly #connection: RedisConnection;
  readonly #options: RedisWindowNodeOptions;
  #runId = "";
  /** What is put under the epoch's key when there is nothing. Used once: the same again would hide a second loss. */
  #nextEpoch: string;
  #epoch = "";

  constructor(options: RedisWindowNodeOptions) {
    this.#options = options;
    this.#nextEpoch = this.#createEpoch();
    this.#connection = new RedisConnection({
      ...options,
      purpose: "windows",
      onConnect: async (redis, runId) => {
        await redis.script("LOAD", mergeScript);
        this.#runId = runId;
        const probe = this.#probe(redis);
        this.#keepEpoch(await probe.exec());
      },
    });
  }

  get epochKey(): string {
    return this.#options.epochKey;
  }

  get isUp(): boolean {
    return this.#connection.isUp;
  }

  /** It changes if the server has lost the reports, or is another server, which may never have had them. */
  get epoch(): string {
    return `${this.#runId} ${this.#epoch}`;
  }

  /**
   * Merges the reports. Throws when the server is away or takes no writes at all, and gives the connection up then;
   * reports may have been merged all the same.
   */
  async exchange(reports: readonly SubjectReport[]): Promise<NodeAnswer> {
    const pipeline = this.#probe(this.#connection.redis);
    for (const { subject, report } of reports) {
      const { replica, gen, count, endsInMs, durationMs, previousGen } = report;
      pipeline.evalsha(scriptDigest, 1, windowNameOf(subject), replica, gen, count, endsInMs, durationMs, previousGen);
    }
    const results = await pipeline.exec();
    try {
      this.#keepEpoch(results);
    } catch (error) {
      // A link that gives no answer would fill up with what is sent into it.
      this.#connection.renew(error as Error);
      throw error;
    }
    const merged = (results ?? []).slice(probeLength);
    const refusals = merged.flatMap(([error]) => error ?? []);
    for (const error of refusals) this.#handleRefusal(error);
    return {
      news: merged.map(([error, reply]) => (error ? undefined : newsOf(reply as MergeReply))),
      refusal: refusals[0] && redisReason(refusals[0]),
    };
  }

  close(): void {
    this.#connection.close();
  }

  /** Reads the epoch, by a write that is refused when windows would be: a full server still reads. */
  #probe(redis: Redis) {
    return redis.pipeline().setnx(this.epochKey, this.#nextEpoch).get(this.epochKey);
  }

  /** Throws the error that the server has answered to the probe. */
  #keepEpoch(results: [error: Error | null, result: unknown][] | null): void {
    const [claimed, kept] = results ?? [];
    const error = claimed?.[0] ?? kept?.[0];
    if (error) throw error;
    if (claimed?.[1] === 1) this.#nextEpoch = this.#createEpoch();
    this.#epoch = String(kept?.[1] ?? "");
  }

  #handleRefusal(error: Error): void {
    const reason = redisReason(error);
    // A new connection begins by sending the script.
    if (reason === "NOSCRIPT") this.#connection.renew(error);
    if (reason === "MOVED" || reason === "ASK") this.#options.onMoved();
  }

  #createEpoch(): string {
    return Buffer.from(this.#options.random.bytes(9)).toString("base64url");
  }
}

/** Commands in front of the reports. */
const probeLength = 2;

type MergeReply = readonly [gen: string, endsInMs: number, others: number, replicas: number, counted: number];

function newsOf([gen, endsInMs, others, replicas, counted]: MergeReply): WindowNews {
  return { gen: Number(gen), endsInMs: Number(endsInMs), others, replicas, counted: counted === 1 };
}
