import type { RateLimit, RateLimitState } from "../../domain/rate-limit.ts";
import type { Permit } from "../limiter.ts";

/** Keeps the permits of its entries. `gen` is the window that permits were taken from. */
interface PermitOwner<Entry> {
  charged(entry: Entry, gen: number, cost: number): void;
  release(entry: Entry, gen: number, rule: RateLimit, cost: number): RateLimitState;
}

/** One verification's permits, of an entry of its owner. */
export class StrictPermit<Entry> implements Permit {
  readonly outcome: Permit["outcome"];
  readonly limit: number;
  readonly remaining: number;
  readonly resetMs: number;
  readonly owner: PermitOwner<Entry>;
  readonly entry: Entry;
  readonly rule: RateLimit;
  readonly cost: number;
  readonly gen: number | undefined;

  constructor(
    owner: PermitOwner<Entry>,
    entry: Entry,
    rule: RateLimit,
    cost: number,
    gen: number | undefined,
    state: RateLimitState,
  ) {
    this.outcome = gen === undefined ? "limited" : "admitted";
    this.limit = state.limit;
    this.remaining = state.remaining;
    this.resetMs = state.resetMs;
    this.owner = owner;
    this.entry = entry;
    this.rule = rule;
    this.cost = cost;
    this.gen = gen;
  }

  commit(): void {
    if (this.gen !== undefined) this.owner.charged(this.entry, this.gen, this.cost);
  }

  release(): RateLimitState {
    return this.gen === undefined ? this : this.owner.release(this.entry, this.gen, this.rule, this.cost);
  }
}

export const noSuchSubject: Permit = {
  outcome: "missing",
  limit: 0,
  remaining: 0,
  resetMs: 0,
  commit() {},
  release: () => noSuchSubject,
};
