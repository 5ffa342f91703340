import type { Spend } from "../../src/domain/verification.ts";
import type { SpentCounters } from "../../src/store/usage-ledger.ts";

/** Counters that are charged one caller at a time: what every ledger has to answer. */
export class PlainCounters {
  readonly balances: Record<string, number>;

  constructor(balances: Record<string, number>) {
    this.balances = { ...balances };
  }

  spend(counters: SpentCounters, cost: number): Spend {
    const [own, shared] = counters;
    if (counters.some((counter) => this.balances[counter] === undefined)) return { outcome: "missing" };
    const lacking = counters.find((counter) => (this.balances[counter] as number) < cost);
    if (lacking === undefined) for (const counter of counters) this.balances[counter] = this.#of(counter) - cost;
    const outcome = lacking === undefined ? "spent" : "exhausted";
    if (shared === undefined) return { outcome, remaining: this.#of(own) };
    const balances = { outcome, remaining: this.#of(own), sharedRemaining: this.#of(shared) } as const;
    return lacking === undefined ? balances : { ...balances, lacking: lacking === own ? "own" : "shared" };
  }

  #of(counter: string): number {
    return this.balances[counter] as number;
  }
}
