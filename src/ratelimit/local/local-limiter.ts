import type { Clock } from "../../ambient/clock.ts";
import type { Metrics } from "../../ambient/metrics.ts";
import type { RateLimit, RateLimitState } from "../../domain/rate-limit.ts";
import { Unavailable } from "../../domain/unavailable.ts";
import type { WindowTable } from "../../domain/window-table.ts";
import type { Permit, RateLimiter } from "../limiter.ts";

/** Hears which windows have changed, and tells the other replicas of them. */
export interface WindowListener {
  /** The others should hear of this window: at once, or with the next tick. */
  changed(slot: number, urgent: boolean): void;
}

/** Counts in this replica's memory: nothing is waited for. */
export class LocalLimiter implements RateLimiter {
  readonly #table: WindowTable;
  readonly #clock: Clock;
  readonly #metrics: Metrics;
  readonly #listener: WindowListener | undefined;
  /** From monotonic to Unix time. Measured once, so that a window's end is told as the same moment every time. */
  #unixOffsetMs: number;

  constructor(
    table: WindowTable,
    ambient: { readonly clock: Clock; readonly metrics: Metrics },
    listener?: WindowListener,
  ) {
    this.#table = table;
    this.#clock = ambient.clock;
    this.#metrics = ambient.metrics;
    this.#listener = listener;
    this.#unixOffsetMs = this.#clock.nowMs() - this.#clock.monotonicMs();
  }

  take(keyId: string, rule: RateLimit): Permit {
    const table = this.#table;
    const nowMs = this.#clock.monotonicMs();
    const slot = table.slotOf(keyId);
    if (slot === undefined) {
      this.#metrics.windowsFull();
      throw new Unavailable("every rate-limit window is taken");
    }
    const left = table.take(slot, rule, nowMs);
    if (this.#listener !== undefined) {
      if (left > 0) this.#listener.changed(slot, table.isNewsUrgent(slot, rule.limit, nowMs));
      else if (table.refusesByGuess(slot, rule.limit, nowMs)) this.#listener.changed(slot, true);
    }
    return new LocalPermit(this, keyId, rule, slot, left, this.#toUnixMs(table.endsMs(slot, rule, nowMs)), table);
  }

  look(keyId: string, rule: RateLimit): RateLimitState {
    const nowMs = this.#clock.monotonicMs();
    const slot = this.#table.find(keyId);
    if (slot !== undefined) return this.#stateOf(slot, rule, nowMs);
    return { limit: rule.limit, remaining: rule.limit, resetMs: this.#toUnixMs(nowMs + rule.durationMs) };
  }

  /** Looks whether the wall clock was set; from then on ends are told by the new time. */
  followWallClock(): void {
    const offsetMs = this.#clock.nowMs() - this.#clock.monotonicMs();
    // Less is the two clocks' rounding, and would make the end of a window wander.
    if (Math.abs(offsetMs - this.#unixOffsetMs) > 50) this.#unixOffsetMs = offsetMs;
  }

  keep(permit: LocalPermit): void {
    this.#table.keep(permit.slot, permit.era);
  }

  giveBack(permit: LocalPermit): RateLimitState {
    this.#table.giveBack(permit.slot, permit.era, permit.mineEndsMs);
    return this.look(permit.keyId, permit.rule);
  }

  #stateOf(slot: number, rule: RateLimit, nowMs: number): RateLimitState {
    return {
      limit: rule.limit,
      remaining: this.#table.remaining(slot, rule.limit, nowMs),
      resetMs: this.#toUnixMs(this.#table.endsMs(slot, rule, nowMs)),
    };
  }

  #toUnixMs(monotonicMs: number): number {
    return Math.ceil(monotonicMs + this.#unixOffsetMs);
  }
}

/** Plain fields: one of these is made for every decision, and private ones would cost as much as the decision. */
class LocalPermit implements Permit {
  readonly limit: number;
  readonly remaining: number;
  readonly resetMs: number;
  readonly outcome: Permit["outcome"];
  readonly limiter: LocalLimiter;
  readonly keyId: string;
  readonly rule: RateLimit;
  readonly slot: number;
  /** The windows it was charged to. */
  readonly era: number;
  readonly mineEndsMs: number;

  constructor(
    limiter: LocalLimiter,
    keyId: string,
    rule: RateLimit,
    slot: number,
    left: number,
    resetMs: number,
    table: WindowTable,
  ) {
    this.limit = rule.limit;
    this.remaining = left > 0 ? left - 1 : 0;
    this.resetMs = resetMs;
    this.outcome = left > 0 ? "admitted" : "limited";
    this.limiter = limiter;
    this.keyId = keyId;
    this.rule = rule;
    this.slot = slot;
    this.era = table.era(slot);
    this.mineEndsMs = table.mineEndsMs(slot);
  }

  keep(): void {
    this.limiter.keep(this);
  }

  giveBack(): RateLimitState {
    return this.limiter.giveBack(this);
  }
}
