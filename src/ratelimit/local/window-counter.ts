import type { Clock } from "../../ambient/clock.ts";
import type { MaybePromise } from "../../domain/maybe-promise.ts";
import type { RateLimit, RateLimitState } from "../../domain/rate-limit.ts";
import type { RowGuard } from "../../domain/row-guard.ts";
import type { WindowRows } from "../../domain/window-rows.ts";
import { LocalPermit, type PermitIssuer } from "./local-permit.ts";

/** Hears which windows have changed, and tells the other replicas of them. */
export interface WindowListener {
  /** The others should hear of this window: at once, or with the next tick. */
  changed(slot: number, urgent: boolean): void;
}

/** The rows that are counted in, and what keeps threads apart that share them; undefined where one counts alone. */
export interface GuardedRows {
  readonly rows: WindowRows;
  readonly guard: RowGuard | undefined;
}

/** Decides in rows, for those who know which row is a subject's: its slot, and the claim under which it is the subject's. */
export abstract class WindowCounter implements PermitIssuer {
  readonly #rows: WindowRows;
  readonly #guard: RowGuard | undefined;
  readonly #clock: Clock;
  readonly #listener: WindowListener | undefined;
  /** From monotonic to Unix time. Measured once, so that a window's end is told as the same moment every time. */
  #unixOffsetMs: number;

  constructor({ rows, guard }: GuardedRows, clock: Clock, listener: WindowListener | undefined) {
    this.#rows = rows;
    this.#guard = guard;
    this.#clock = clock;
    this.#listener = listener;
    this.#unixOffsetMs = clock.nowMs() - clock.monotonicMs();
  }

  abstract peek(subject: string, rule: RateLimit): MaybePromise<RateLimitState>;

  /** A verification decides by the same rows. */
  inspect(subject: string, rule: RateLimit): MaybePromise<RateLimitState> {
    return this.peek(subject, rule);
  }

  commit({ slot, claim, cost, epoch }: LocalPermit): void {
    if (this.#guard !== undefined && !this.#guard.hold(slot, claim)) return;
    this.#rows.commit(slot, epoch, cost);
    if (this.#guard !== undefined) this.#guard.letGo(slot, claim);
  }

  release({ subject, rule, slot, claim, cost, epoch, mineEndsMs }: LocalPermit): MaybePromise<RateLimitState> {
    if (this.#guard === undefined || this.#guard.hold(slot, claim)) {
      this.#rows.release(slot, epoch, mineEndsMs, cost);
      this.#guard?.letGo(slot, claim);
    }
    return this.peek(subject, rule);
  }

  /** From monotonic to Unix time, by which ends are told. */
  get unixOffsetMs(): number {
    return this.#unixOffsetMs;
  }

  setUnixOffset(unixOffsetMs: number): void {
    this.#unixOffsetMs = unixOffsetMs;
  }

  /** Looks whether the wall clock was set; from then on ends are told by the new time. */
  followWallClock(): void {
    const offsetMs = this.#clock.nowMs() - this.#clock.monotonicMs();
    // Less is the two clocks' rounding, and would make the end of a window wander.
    if (Math.abs(offsetMs - this.#unixOffsetMs) > 50) this.#unixOffsetMs = offsetMs;
  }

  /** Undefined when the row is another subject's by now. */
  protected takeIn(
    slot: number,
    claim: number,
    subject: string,
    rule: RateLimit,
    cost: number,
  ): LocalPermit | undefined {
    const rows = this.#rows;
    if (this.#guard !== undefined && !this.#guard.hold(slot, claim)) return undefined;
    // Not before: who had to wait for the row would decide by a time that is over.
    const nowMs = this.#clock.monotonicMs();
    const left = rows.take(slot, rule, nowMs, cost);
    const isAdmitted = left >= cost;
    // What the window looks like after the take: to a caller who is admitted, one more may be all that is left.
    const resetMs = this.#toUnixMs(rows.endsMs(slot, rule, nowMs, isAdmitted ? 1 : cost));
    const permit = new LocalPermit(
      this,
      subject,
      rule,
      slot,
      claim,
      cost,
      left,
      resetMs,
      rows.epoch(slot),
      rows.mineEndsMs(slot),
    );
    const isUrgent = this.#listener !== undefined && this.#isUrgent(slot, rule.limit, cost, isAdmitted, nowMs);
    if (this.#guard !== undefined) this.#guard.letGo(slot, claim);
    if (this.#listener !== undefined && (isAdmitted || isUrgent)) this.#listener.changed(slot, isUrgent);
    return permit;
  }

  /** Undefined when the row is another subject's by now. */
  protected peekIn(slot: number, claim: number, rule: RateLimit): RateLimitState | undefined {
    if (this.#guard !== undefined && !this.#guard.hold(slot, claim)) return undefined;
    const nowMs = this.#clock.monotonicMs();
    const remaining = this.#rows.remaining(slot, rule.limit, nowMs);
    const resetMs = this.#toUnixMs(this.#rows.endsMs(slot, rule, nowMs));
    this.#guard?.letGo(slot, claim);
    return { limit: rule.limit, remaining, resetMs };
  }

  /** Where a subject stands that has no row. */
  protected untouched({ limit, durationMs }: RateLimit): RateLimitState {
    return { limit, remaining: limit, resetMs: this.#toUnixMs(this.#clock.monotonicMs() + durationMs) };
  }

  #isUrgent(slot: number, limit: number, cost: number, isAdmitted: boolean, nowMs: number): boolean {
    if (isAdmitted) return this.#rows.isNewsUrgent(slot, limit, nowMs);
    return this.#rows.refusesByGuess(slot, limit, nowMs, cost);
  }

  #toUnixMs(monotonicMs: number): number {
    return Math.ceil(monotonicMs + this.#unixOffsetMs);
  }
}
