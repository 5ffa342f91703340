import { setTimeout as delay } from "node:timers/promises";
import { SeededRandom } from "../../domain/seeded-random.ts";
import { type HolderKind, holderKinds, mixedCosts } from "../limited.ts";
import { watchStandstill } from "../standstill.ts";
import { type StrictAnswer, StrictBook, type StrictRule } from "./book.ts";

/** Who is asked. It answers every call: what went wrong is an answer too. */
export interface StrictReplica {
  ask(key: number, cost: number): Promise<StrictAnswer>;
}

export interface KeyDemand extends StrictRule {
  /** What is asked for in one window, in limits. */
  readonly demand: number;
  /** `even`: spread over time and replicas. `bursts`: all at once, four times a second. `roaming`: one replica at a time. */
  readonly shape: Shape;
  /** What calls cost, each as often as the others. By default 1. */
  readonly costs?: readonly number[];
}

type Shape = "even" | "bursts" | "roaming";

/** Keys of these limits in every shape and with every demand, as many of each as are named. */
export function demandOf(rules: readonly (StrictRule & { readonly keys: number })[]): KeyDemand[] {
  return rules.flatMap(({ keys, limit, durationMs }) =>
    Array.from({ length: keys }, (_, i) => ({
      limit,
      durationMs,
      demand: demands[i % demands.length] as number,
      shape: shapes[i % shapes.length] as Shape,
    })),
  );
}

/** The same demand, on limits of every kind of holder, and every other one of 5 and more by calls that cost 0 to 20. */
export function varied(demand: readonly KeyDemand[]): KeyDemand[] {
  return demand.map((one, i) => ({
    ...one,
    of: holderKinds[i % holderKinds.length] as HolderKind,
    ...(one.limit >= 5 && i % 2 === 1 && { costs: mixedCosts }),
  }));
}

const shapes = ["even", "bursts", "roaming"] as const;
const demands = [4, 3, 2, 2.5, 0.9, 1.5, 2];

const tickMs = 10;
const burstMs = 250;
const roamMs = 350;

/** Asks for many keys at once at a fixed rate, independent of the answers, and records them. */
export class StrictLoad {
  readonly book: StrictBook;
  readonly #keys: readonly KeyDemand[];
  readonly #replicas: readonly StrictReplica[];
  readonly #random: SeededRandom;
  readonly #underWay: number[];
  readonly #costUnderWay: number[];
  readonly #underWayMax: number;
  readonly #calls = new Set<Promise<void>>();
  /** Calls not made because too many were under way. */
  skipped = 0;

  /**
   * At most so many calls are under way at one replica. What is more is not asked: a busy machine is not to be flooded,
   * and a replica that stands still must not fill the memory.
   */
  constructor(keys: readonly KeyDemand[], replicas: readonly StrictReplica[], underWayMax: number, seed = 1) {
    this.book = new StrictBook(keys, undefined, watchStandstill());
    this.#keys = keys;
    this.#replicas = replicas;
    this.#random = new SeededRandom(seed);
    this.#underWay = replicas.map(() => 0);
    this.#costUnderWay = replicas.map(() => 0);
    this.#underWayMax = underWayMax;
  }

  /** Asks once for each key everywhere, so that connections are open and keys in memory. */
  async warmUp(): Promise<void> {
    for (let replica = 0; replica < this.#replicas.length; replica++) {
      for (let key = 0; key < this.#keys.length; key++) this.#askOnce(key, replica);
      await Promise.all(this.#calls);
    }
  }

  /**
   * Asks for so long, and on until that has been enough: of the calls that are due, a busy machine makes only some. Resolves
   * when every call has been answered.
   */
  run(ms: number, isEnough: () => boolean = () => true): Promise<void> {
    return this.during(async () => {
      await delay(ms);
      while (!isEnough()) await delay(burstMs);
    });
  }

  /** Asks while `act` runs. Resolves when every call has been answered. */
  async during(act: () => Promise<unknown>): Promise<void> {
    let stopped = false;
    const asking = this.#keepAsking(() => stopped);
    try {
      await act();
    } finally {
      stopped = true;
      await asking;
      await Promise.all(this.#calls);
    }
  }

  /** The costs of all calls that this replica has not answered. */
  costUnderWayAt(replica: number): number {
    return this.#costUnderWay[replica] as number;
  }

  async #keepAsking(isStopped: () => boolean): Promise<void> {
    const startMs = performance.now();
    const asked = this.#keys.map(() => 0);
    while (!isStopped()) {
      const elapsedMs = performance.now() - startMs;
      this.#keys.forEach((key, index) => {
        const { limit, durationMs, demand, shape } = key;
        const untilMs = shape === "bursts" ? Math.floor(elapsedMs / burstMs) * burstMs : elapsedMs;
        const due = Math.floor((demand * limit * untilMs) / durationMs) + 1;
        for (let n = asked[index] as number; n < due; n++) this.#askOnce(index, this.#replicaFor(key, elapsedMs));
        asked[index] = due;
      });
      await delay(tickMs);
    }
  }

  #replicaFor({ shape }: KeyDemand, elapsedMs: number): number {
    if (shape === "roaming") return Math.floor(elapsedMs / roamMs) % this.#replicas.length;
    return this.#random.integer(0, this.#replicas.length - 1);
  }

  #askOnce(key: number, replica: number): void {
    const underWay = this.#underWay[replica] as number;
    if (underWay >= this.#underWayMax) {
      this.skipped++;
      return;
    }
    this.#underWay[replica] = underWay + 1;
    const { costs } = this.#keys[key] as KeyDemand;
    const cost = costs ? this.#random.pick(costs) : 1;
    const call = this.book.begin(key, replica, cost);
    this.#costUnderWay[replica] = (this.#costUnderWay[replica] as number) + cost;
    const asking = (this.#replicas[replica] as StrictReplica).ask(key, cost).then((answer) => {
      this.book.end(call, answer);
      this.#underWay[replica] = (this.#underWay[replica] as number) - 1;
      this.#costUnderWay[replica] = (this.#costUnderWay[replica] as number) - cost;
      this.#calls.delete(asking);
    });
    this.#calls.add(asking);
  }
}
