import { sha1 } from "../../ambient/crypto.ts";
import type { Random } from "../../ambient/random.ts";
import type { WindowNews } from "../../domain/shared-window.ts";
import type { HubAnswer, KeyedReport, WindowHub } from "../local/window-hub.ts";
import { mergeScript } from "./merge-script.ts";
import { RedisConnection, type RedisConnectionOptions } from "./redis-connection.ts";

const windowPrefix = "latchkey:window:";
/** Gone when Redis has lost its data; whoever sees that first puts a new one. */
const epochKey = "latchkey:windows-epoch";
const scriptDigest = sha1(mergeScript);

/** Replicas meet in Redis. Everything there can be lost: it is a copy of what the replicas know. */
export class RedisWindowHub implements WindowHub {
  readonly #connection: RedisConnection;
  readonly #random: Random;

  constructor(options: Omit<RedisConnectionOptions, "purpose" | "onConnect"> & { readonly random: Random }) {
    this.#random = options.random;
    this.#connection = new RedisConnection({
      ...options,
      purpose: "windows",
      onConnect: async (redis) => {
        await redis.script("LOAD", mergeScript);
      },
    });
  }

  get isReachable(): boolean {
    return this.#connection.isUp;
  }

  async exchange(reports: readonly KeyedReport[]): Promise<HubAnswer> {
    const pipeline = this.#connection.redis.pipeline();
    pipeline.get(epochKey);
    for (const { keyId, report } of reports) {
      const { replica, gen, count, endsInMs, durationMs, over } = report;
      pipeline.evalsha(scriptDigest, 1, windowPrefix + keyId, replica, gen, count, endsInMs, durationMs, over);
    }
    const [epoch, ...merged] = (await pipeline.exec()) ?? [];
    for (const result of [epoch, ...merged]) if (result?.[0]) this.#suspect(result[0]);
    // A link that gives no answer would fill up with what is sent into it.
    if (epoch === undefined || epoch[0]) throw epoch?.[0] ?? new Error("Redis gave no answer");
    return {
      news: merged.map(([error, reply]) => (error ? undefined : newsOf(reply as MergeReply))),
      epoch: (epoch[1] as string | null) ?? (await this.#newEpoch()),
    };
  }

  close(): void {
    this.#connection.close();
  }

  /** A Redis that does not answer, or no longer has the script, gets a new connection, which begins by sending it. */
  #suspect(error: Error): void {
    if (error.message.startsWith("NOSCRIPT")) this.#connection.renew("the script is gone");
    else this.#connection.suspect(error);
  }

  async #newEpoch(): Promise<string> {
    const mine = Buffer.from(this.#random.bytes(9)).toString("base64url");
    const isFirst = await this.#connection.redis.set(epochKey, mine, "NX");
    return isFirst === null ? ((await this.#connection.redis.get(epochKey)) ?? mine) : mine;
  }
}

type MergeReply = readonly [gen: string, endsInMs: number, others: number, replicas: number, counted: number];

function newsOf([gen, endsInMs, others, replicas, counted]: MergeReply): WindowNews {
  return { gen: Number(gen), endsInMs: Number(endsInMs), others, replicas, counted: counted === 1 };
}
