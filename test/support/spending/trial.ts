import { setTimeout as delay } from "node:timers/promises";
import { SeededRandom } from "../../domain/seeded-random.ts";
import { latchkeyOf } from "../clients.ts";
import { type Customer, PricedLoad } from "../priced-load.ts";
import { testRootKey } from "../test-root-key.ts";
import { SpendingBook } from "./book.ts";
import type { BreakableService, Fault, StartBreakable } from "./services.ts";

const callers = 32;
const many = 100_000_000;
const costMax = 20;
/** What this one has is used up again and again. */
const scarceOwner = "scarce";
const scarceRemaining = 20;
/** Valid answers between two changes of balances. */
const usesPerChange = 10;

const customers: readonly Customer[] = [
  { ownerId: "both", keys: 3, remaining: many, keyRemaining: many, costMax },
  { ownerId: "only the owner", keys: 2, remaining: many, costMax: 1 },
  { ownerId: "only keys", keys: 3, keyRemaining: many, costMax: 1 },
  { ownerId: scarceOwner, keys: 2, remaining: scarceRemaining, keyRemaining: many, costMax },
];

export interface TrialOptions {
  readonly start: StartBreakable;
  /** Verifications that were valid, at least. */
  readonly uses: number;
  /** How often everything breaks. */
  readonly rounds: number;
  readonly seed: number;
  /** The names of some; absent: all of them. */
  readonly faults?: readonly string[] | undefined;
}

/** Uses counters of keys and owners while a service breaks, and compares what was spent with them and with the callers. */
export class SpendingTrial {
  readonly service: BreakableService;
  readonly load: PricedLoad;
  readonly #book = new SpendingBook();
  readonly #random: SeededRandom;

  private constructor(service: BreakableService, random: SeededRandom) {
    this.service = service;
    this.#random = random;
    this.load = new PricedLoad(service.fleet, random);
  }

  /** Throws when anything is wrong. */
  static async run({ start, uses, rounds, seed, faults }: TrialOptions): Promise<SpendingTrial> {
    const random = new SeededRandom(seed);
    const service = await start(random);
    const trial = new SpendingTrial(service, random);
    for (const customer of customers) await trial.load.add(customer);
    const chosen = faults ?? service.faults.map(({ name }) => name);
    const all = Array.from({ length: rounds }, () => chosen).flat();
    for (const [done, fault] of all.entries()) await trial.runFault(fault, Math.ceil((uses * (done + 1)) / all.length));
    return trial;
  }

  /** Breaks one thing under load, up to so many uses in all, and closes a page of the book. */
  async runFault(name: string, uses = this.valid): Promise<void> {
    await this.#round(this.service.faults.find((fault) => fault.name === name) as Fault, uses);
    const problems = [...(await this.problems()), ...(await this.load.problems())];
    if (problems.length > 0) throw new Error(`${name}, after ${this.valid} uses:\n${problems.join("\n")}`);
  }

  get valid(): number {
    return this.load.answers.VALID ?? 0;
  }

  /** What is wrong with what was spent, by what callers know, or would know. Asked through any process. */
  problems(counters: PricedLoad["counters"] = this.load.counters): Promise<string[]> {
    const { fleet } = this.service;
    const { baseUrl } = fleet.replica(this.#random.integer(0, fleet.size - 1));
    return this.#book.problems(latchkeyOf("sdk", baseUrl, testRootKey), counters);
  }

  async #round({ hit, mend }: Fault, uses: number): Promise<void> {
    const { load, service } = this;
    const missing = Math.max(0, uses - this.valid);
    let isOver = false;
    const changing = this.#changeBalances(() => isOver);
    try {
      await load.during(callers, async () => {
        await this.#until(() => this.valid >= uses - (service.hasOthers ? missing / 4 : 0));
        await hit();
        if (service.hasOthers) await this.#until(() => this.valid >= uses);
      });
      await mend?.();
    } finally {
      isOver = true;
      await changing;
    }
    await this.#book.closePage(load.counters, service.tables);
  }

  async #until(isReached: () => boolean): Promise<void> {
    while (!isReached()) await this.load.answered(1);
  }

  /** Balances are raised and lowered meanwhile, which is no spending. */
  async #changeBalances(isOver: () => boolean): Promise<void> {
    const counters = [...this.load.counters.values()];
    for (let next = this.valid; ; next += usesPerChange) {
      while (this.valid < next && !isOver()) await delay(2);
      if (isOver()) return;
      const counter = this.#random.pick(counters);
      const isScarce = counter.id === scarceOwner;
      await this.load.change(counter, this.#random.integer(isScarce ? 1 : -scarceRemaining, scarceRemaining));
    }
  }
}
