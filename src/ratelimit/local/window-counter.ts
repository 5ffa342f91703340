import type { Clock } from "../../ambient/clock.ts";
import type { RateLimit, RateLimitState } from "../../domain/rate-limit.ts";
import type { RowGuard } from "../../domain/row-guard.ts";
import type { WindowRows } from "../../domain/window-rows.ts";
import { LocalPermit, type PermitIssuer } from "./local-permit.ts";

/** Hears which windows have changed, and tells the other replicas of them. */
export interface WindowListener {
  /** The others should hear of this window: at once, or with the next tick. */
  changed(slot: number, urgent: boolean): void;
}

/** Decides in a row, for whoever knows which row is a key's: its slot, and the claim under which it is the key's. */
export class WindowCounter {
  readonly #rows: WindowRows;
  readonly #guard: RowGuard;
  readonly #clock: Clock;
  readonly #listener: WindowListener | undefined;
  /** From monotonic to Unix time. Measured once, so that a window's end is told as the same moment every time. */
  unixOffsetMs: number;

  constructor(
    { rows, guard }: { readonly rows: WindowRows; readonly guard: RowGuard },
    clock: Clock,
    listener?: WindowListener,
  ) {
    this.#rows = rows;
    this.#guard = guard;
    this.#clock = clock;
    this.#listener = listener;
    this.unixOffsetMs = this.#clock.nowMs() - this.#clock.monotonicMs();
  }

  /** Undefined when the row is another key's by now. */
  take(issuer: PermitIssuer, keyId: string, rule: RateLimit, slot: number, claim: number): LocalPermit | undefined {
    const rows = this.#rows;
    if (!this.#guard.hold(slot, claim)) return undefined;
    // Not before: who had to wait for the row would decide by a time that is over.
    const nowMs = this.#clock.monotonicMs();
    const left = rows.take(slot, rule, nowMs);
    const endsMs = rows.endsMs(slot, rule, nowMs);
    const era = rows.era(slot);
    const mineEndsMs = rows.mineEndsMs(slot);
    const isUrgent = this.#listener !== undefined && this.#isUrgent(slot, rule.limit, left, nowMs);
    this.#guard.letGo(slot, claim);
    if (this.#listener !== undefined && (left > 0 || isUrgent)) this.#listener.changed(slot, isUrgent);
    return new LocalPermit(issuer, keyId, rule, slot, claim, left, this.#toUnixMs(endsMs), era, mineEndsMs);
  }

  /** Undefined when the row is another key's by now. */
  look(rule: RateLimit, slot: number, claim: number): RateLimitState | undefined {
    if (!this.#guard.hold(slot, claim)) return undefined;
    const nowMs = this.#clock.monotonicMs();
    const remaining = this.#rows.remaining(slot, rule.limit, nowMs);
    const endsMs = this.#rows.endsMs(slot, rule, nowMs);
    this.#guard.letGo(slot, claim);
    return { limit: rule.limit, remaining, resetMs: this.#toUnixMs(endsMs) };
  }

  /** Where a key stands that has no row. */
  untouched({ limit, durationMs }: RateLimit): RateLimitState {
    return { limit, remaining: limit, resetMs: this.#toUnixMs(this.#clock.monotonicMs() + durationMs) };
  }

  /** What was taken has been used. Of a row that is another key's by now there is nothing to say. */
  keep({ slot, claim, era }: LocalPermit): void {
    if (!this.#guard.hold(slot, claim)) return;
    this.#rows.keep(slot, era);
    this.#guard.letGo(slot, claim);
  }

  /** What was taken was not used. */
  giveBack({ slot, claim, era, mineEndsMs }: LocalPermit): void {
    if (!this.#guard.hold(slot, claim)) return;
    this.#rows.giveBack(slot, era, mineEndsMs);
    this.#guard.letGo(slot, claim);
  }

  /** Looks whether the wall clock was set; from then on ends are told by the new time. */
  followWallClock(): void {
    const offsetMs = this.#clock.nowMs() - this.#clock.monotonicMs();
    // Less is the two clocks' rounding, and would make the end of a window wander.
    if (Math.abs(offsetMs - this.unixOffsetMs) > 50) this.unixOffsetMs = offsetMs;
  }

  #isUrgent(slot: number, limit: number, left: number, nowMs: number): boolean {
    return left > 0 ? this.#rows.isNewsUrgent(slot, limit, nowMs) : this.#rows.refusesByGuess(slot, limit, nowMs);
  }

  #toUnixMs(monotonicMs: number): number {
    return Math.ceil(monotonicMs + this.unixOffsetMs);
  }
}
