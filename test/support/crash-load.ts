import { setTimeout as delay } from "node:timers/promises";
import type { KeysClient } from "../../src/sdk/index.ts";
import { clientOf } from "./clients.ts";
import { type LatchkeyProcess, startLatchkey } from "./latchkey-process.ts";
import { type OtherKey, OtherKeys } from "./other-keys.ts";

/** What callers know of a counter between two readings of it. */
export interface CounterRecord {
  readonly before: number;
  readonly after: number;
  /** Every `remaining` that a valid answer carried: one use each. */
  readonly acknowledged: readonly number[];
  /** Calls that got no answer: each may have used one. */
  readonly unanswered: number;
}

export interface CounterAccount {
  /** Uses that a caller was told of and that the counter has lost. */
  readonly lost: number;
  /** Uses that were counted and that no caller was told of. */
  readonly extra: number;
  readonly problems: readonly string[];
}

/** Compares the counter with what callers were told. */
export function accountFor({ before, after, acknowledged, unanswered }: CounterRecord): CounterAccount {
  const used = before - after;
  const lost = Math.max(0, acknowledged.length - used);
  const extra = Math.max(0, used - acknowledged.length);
  const outside = acknowledged.filter((value) => value >= before || value < after).length;
  const problems: string[] = [];
  if (lost > 0) problems.push(`${lost} acknowledged uses were lost`);
  if (extra > unanswered) problems.push(`${extra} uses for ${unanswered} unanswered calls`);
  if (outside > 0) problems.push(`${outside} acknowledged values lie outside of what was used`);
  return { lost, extra, problems };
}

const callersPerProtocol = 12;
const otherKeysPerRound = 20;

/** A data folder with one counted key, its service started and killed again and again while it is being used. */
export class CrashLoad {
  readonly #others = new OtherKeys();
  /** Every `remaining` that a caller was told. */
  readonly values: number[] = [];
  readonly #environment: Record<string, string>;
  readonly #rootKey: string;
  #latchkey: LatchkeyProcess | undefined;
  #counted = "";
  #killed = false;

  constructor(dataDir: string, rootKey: string) {
    this.#environment = { LATCHKEY_DATA_DIR: dataDir, LATCHKEY_ROOT_KEY: rootKey };
    this.#rootKey = rootKey;
  }

  get otherKeys(): readonly OtherKey[] {
    return this.#others.all;
  }

  wrongOtherKeys(): Promise<OtherKey[]> {
    return this.#others.wrong(this.#client("grpc"));
  }

  async start(): Promise<void> {
    this.#latchkey = await startLatchkey(this.#environment);
    this.#killed = false;
  }

  async createCounted(remaining: number): Promise<void> {
    this.#counted = (await this.#client("sdk").createKey({ apiId: "api", remaining })).key;
  }

  /** The current counter. Reading it takes one use, so the value before that use is returned. */
  async readCounter(): Promise<{ found: number; left: number }> {
    const [left] = await this.use(1);
    return { found: (left as number) + 1, left: left as number };
  }

  async use(times: number): Promise<number[]> {
    const client = this.#client("sdk");
    const seen: number[] = [];
    while (seen.length < times) await this.#useOnce(client, seen);
    return seen;
  }

  async createOthers(times: number): Promise<void> {
    for (let i = 0; i < times; i++) await this.#others.createOne(this.#client("sdk"));
  }

  async kill(): Promise<void> {
    this.#killed = true;
    this.#latchkey?.kill("SIGKILL");
    await this.#latchkey?.exited;
  }

  /** Uses, creates and deletes from many sides, and kills the process in the middle of it, after so many uses. */
  async runUntilKilled(afterUses: number): Promise<Pick<CounterRecord, "acknowledged" | "unanswered">> {
    const acknowledged: number[] = [];
    const clients = [this.#client("sdk"), this.#client("grpc")];
    const users = clients.flatMap((client) =>
      Array.from({ length: callersPerProtocol }, () => this.#repeat(() => this.#useOnce(client, acknowledged))),
    );
    const [json, grpc] = clients as [KeysClient, KeysClient];
    const doomed = this.#others.halfOfThose();
    const others = [
      this.#repeat(() => this.#others.createOne(json), otherKeysPerRound),
      this.#repeat(() => this.#others.deleteOne(grpc, doomed.pop()), doomed.length),
    ];
    const all = Promise.all([...users, ...others]);
    try {
      const enough = this.#until(() => acknowledged.length >= afterUses);
      // The callers only come to an end before that when the service fails them.
      await Promise.race([enough, all]);
    } finally {
      await this.kill();
    }
    const ends = (await all).slice(0, users.length);
    return { acknowledged, unanswered: ends.filter((end) => end === "unanswered").length };
  }

  /** Calls until the process is killed. A call that fails before that is an error of the service's. */
  async #repeat(call: () => Promise<void>, timesMax = Number.POSITIVE_INFINITY): Promise<"done" | "unanswered"> {
    for (let times = 0; times < timesMax && !this.#killed; times++) {
      try {
        await call();
      } catch (error) {
        if (this.#killed) return "unanswered";
        throw error;
      }
    }
    return "done";
  }

  async #until(reached: () => boolean): Promise<void> {
    while (!reached() && !this.#killed) await delay(1);
  }

  async #useOnce(client: KeysClient, acknowledged: number[]): Promise<void> {
    const { valid, remaining } = await client.verifyKey({ key: this.#counted });
    if (!valid || remaining === undefined) throw new Error("the counted key was refused");
    acknowledged.push(remaining);
    this.values.push(remaining);
  }

  #client(kind: "sdk" | "grpc"): KeysClient {
    return clientOf(kind, this.#latchkey?.baseUrl ?? "", this.#rootKey);
  }
}
