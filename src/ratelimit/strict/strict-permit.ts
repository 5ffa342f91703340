import type { RateLimit, RateLimitState } from "../../domain/rate-limit.ts";
import type { Permit } from "../limiter.ts";

/** Keeps the permits of its entries. `gen` is the window that a permit was taken from. */
interface PermitOwner<Entry> {
  charged(entry: Entry, gen: number): void;
  release(entry: Entry, gen: number, rule: RateLimit): RateLimitState;
}

/** One verification's permit, of an entry of its owner. */
export class StrictPermit<Entry> implements Permit {
  readonly outcome: Permit["outcome"];
  readonly limit: number;
  readonly remaining: number;
  readonly resetMs: number;
  readonly owner: PermitOwner<Entry>;
  readonly entry: Entry;
  readonly rule: RateLimit;
  readonly gen: number | undefined;

  constructor(
    owner: PermitOwner<Entry>,
    entry: Entry,
    rule: RateLimit,
    gen: number | undefined,
    state: RateLimitState,
  ) {
    this.outcome = gen === undefined ? "limited" : "admitted";
    this.limit = state.limit;
    // A refused caller always sees 0, even if other replicas hold permits that they will return.
    this.remaining = gen === undefined ? 0 : state.remaining;
    this.resetMs = state.resetMs;
    this.owner = owner;
    this.entry = entry;
    this.rule = rule;
    this.gen = gen;
  }

  commit(): void {
    if (this.gen !== undefined) this.owner.charged(this.entry, this.gen);
  }

  release(): RateLimitState {
    return this.gen === undefined ? this : this.owner.release(this.entry, this.gen, this.rule);
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
