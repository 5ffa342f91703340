import type { MaybePromise } from "../../domain/maybe-promise.ts";
import type { RateLimit, RateLimitState } from "../../domain/rate-limit.ts";
import type { Permit } from "../limiter.ts";

/** Who gave the permit out, and hears what became of it. */
export interface PermitIssuer {
  commit(permit: LocalPermit): void;
  release(permit: LocalPermit): MaybePromise<RateLimitState>;
}

/** Plain fields: one of these is made for every decision, and private ones would cost as much as the decision. */
export class LocalPermit implements Permit {
  readonly limit: number;
  readonly remaining: number;
  readonly resetMs: number;
  readonly outcome: Permit["outcome"];
  readonly issuer: PermitIssuer;
  readonly subject: string;
  readonly rule: RateLimit;
  /** The row, and the windows in it that it was charged to. */
  readonly slot: number;
  readonly claim: number;
  readonly cost: number;
  readonly epoch: number;
  readonly mineEndsMs: number;

  constructor(
    issuer: PermitIssuer,
    subject: string,
    rule: RateLimit,
    slot: number,
    claim: number,
    cost: number,
    left: number,
    resetMs: number,
    epoch: number,
    mineEndsMs: number,
  ) {
    this.limit = rule.limit;
    this.remaining = left >= cost ? left - cost : left;
    this.resetMs = resetMs;
    this.outcome = left >= cost ? "admitted" : "limited";
    this.issuer = issuer;
    this.subject = subject;
    this.rule = rule;
    this.slot = slot;
    this.claim = claim;
    this.cost = cost;
    this.epoch = epoch;
    this.mineEndsMs = mineEndsMs;
  }

  commit(): void {
    this.issuer.commit(this);
  }

  release(): MaybePromise<RateLimitState> {
    return this.issuer.release(this);
  }
}
