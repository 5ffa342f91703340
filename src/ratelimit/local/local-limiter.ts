import type { Ambient } from "../../ambient/ambient.ts";
import type { Clock } from "../../ambient/clock.ts";
import type { Metrics } from "../../ambient/metrics.ts";
import type { Random } from "../../ambient/random.ts";
import type { RateLimit, RateLimitState } from "../../domain/rate-limit.ts";
import { noWindowFor } from "../../domain/window-places.ts";
import type { WindowRows } from "../../domain/window-rows.ts";
import type { WindowTable } from "../../domain/window-table.ts";
import type { InspectingLimiter, Permit } from "../limiter.ts";

/** Reports windows that have changed to the other replicas. */
export interface WindowListener {
  /** The window is reported immediately, or with the next tick. */
  changed(slot: number, urgent: boolean): void;
}

/** Counts in this replica's memory: nothing is waited for. */
export class LocalLimiter implements InspectingLimiter {
  readonly #table: WindowTable;
  readonly #rows: WindowRows;
  readonly #clock: Clock;
  readonly #metrics: Metrics;
  readonly #listener: WindowListener | undefined;
  /** From monotonic to Unix time. Measured once, so that every answer shows the same end of a window. */
  #unixOffsetMs: number;

  constructor(table: WindowTable, { clock, metrics }: Pick<Ambient, "clock" | "metrics">, listener?: WindowListener) {
    this.#table = table;
    this.#rows = table.rows;
    this.#clock = clock;
    this.#metrics = metrics;
    this.#listener = listener;
    this.#unixOffsetMs = clock.nowMs() - clock.monotonicMs();
  }

  take(subject: string, rule: RateLimit, cost = 1, apiId?: string): LocalPermit {
    const slot = this.#table.slotOf(subject, apiId);
    if (slot === undefined) {
      this.#metrics.windowsFull();
      throw noWindowFor(apiId);
    }
    const rows = this.#rows;
    const nowMs = this.#clock.monotonicMs();
    const left = rows.take(slot, rule, nowMs, cost);
    const isAdmitted = left >= cost;
    // What the window looks like after the take: to a caller who is admitted, one more may be all that is left.
    const resetMs = this.#toUnixMs(rows.endsMs(slot, rule, nowMs, isAdmitted ? 1 : cost));
    const epoch = rows.epoch(slot);
    const mineEndsMs = rows.mineEndsMs(slot);
    const permit = new LocalPermit(this, subject, rule, slot, cost, left, resetMs, epoch, mineEndsMs);
    const isUrgent = this.#listener !== undefined && this.#isUrgent(slot, rule.limit, cost, isAdmitted, nowMs);
    if (this.#listener !== undefined && (isAdmitted || isUrgent)) this.#listener.changed(slot, isUrgent);
    return permit;
  }

  /** Only for permits. */
  commit({ slot, cost, epoch }: LocalPermit): void {
    this.#rows.commit(slot, epoch, cost);
  }

  /** Only for permits. */
  release({ subject, rule, slot, cost, epoch, mineEndsMs }: LocalPermit): RateLimitState {
    this.#rows.release(slot, epoch, mineEndsMs, cost);
    return this.peek(subject, rule);
  }

  peek(subject: string, rule: RateLimit): RateLimitState {
    const { limit, durationMs } = rule;
    const slot = this.#table.find(subject);
    const nowMs = this.#clock.monotonicMs();
    // Without a row the subject has used nothing.
    if (slot === undefined) return { limit, remaining: limit, resetMs: this.#toUnixMs(nowMs + durationMs) };
    const resetMs = this.#toUnixMs(this.#rows.endsMs(slot, rule, nowMs));
    return { limit, remaining: this.#rows.remaining(slot, limit, nowMs), resetMs };
  }

  /** A verification decides by the same rows. */
  inspect(subject: string, rule: RateLimit): RateLimitState {
    return this.peek(subject, rule);
  }

  /** Checks whether the wall clock was set. From then on callers see the ends of windows by the new time. */
  followWallClock(): void {
    const offsetMs = this.#clock.nowMs() - this.#clock.monotonicMs();
    // Less is the two clocks' rounding, and would make the end of a window wander.
    if (Math.abs(offsetMs - this.#unixOffsetMs) > 50) this.#unixOffsetMs = offsetMs;
  }

  #isUrgent(slot: number, limit: number, cost: number, isAdmitted: boolean, nowMs: number): boolean {
    if (isAdmitted) return this.#rows.isNewsUrgent(slot, limit, nowMs);
    return this.#rows.refusesByGuess(slot, limit, nowMs, cost);
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
  readonly issuer: LocalLimiter;
  readonly subject: string;
  readonly rule: RateLimit;
  /** The row, and the windows in it that it was charged to. */
  readonly slot: number;
  readonly cost: number;
  readonly epoch: number;
  readonly mineEndsMs: number;

  constructor(
    issuer: LocalLimiter,
    subject: string,
    rule: RateLimit,
    slot: number,
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
    this.cost = cost;
    this.epoch = epoch;
    this.mineEndsMs = mineEndsMs;
  }

  commit(): void {
    this.issuer.commit(this);
  }

  release(): RateLimitState {
    return this.issuer.release(this);
  }
}

/** Numbers for windows: random in front, so that no two replicas come up with the same. */
export function windowNumbersFrom(random: Random): () => number {
  const [a = 0, b = 0, c = 0] = random.bytes(3);
  const first = ((a << 16) | (b << 8) | c) * 2 ** 28;
  let next = 0;
  return () => {
    next = (next + 1) % 2 ** 28;
    return first + next;
  };
}
