import type { Ambient } from "../ambient/ambient.ts";
import { sleptMs } from "../ambient/clock.ts";
import { ClockJumps, type ClockReading, clockJumpMs } from "../domain/clock-jumps.ts";

/** Counters with early refills are logged at most this often. */
const reportEveryMs = 60_000;

/**
 * Reports a wrong ledger clock, because windows and refills depend on it. There is one for all lanes of a process, so
 * that a jump is reported once. How to repair the effects: docs/operations.md.
 */
export class LedgerWatch {
  readonly #ambient: Pick<Ambient, "clock" | "log" | "metrics">;
  readonly #jumps: ClockJumps;
  #ahead = 0;
  #reportedAtMs = Number.NEGATIVE_INFINITY;

  constructor(ambient: Pick<Ambient, "clock" | "log" | "metrics">, readSleptMs = sleptMs) {
    this.#ambient = ambient;
    this.#jumps = new ClockJumps(readSleptMs);
  }

  /** Called with the clock of each answer of the ledger. */
  onClockReading(reading: ClockReading): void {
    const byMs = this.#jumps.detect(reading);
    if (byMs === 0) return;
    const direction = byMs > 0 ? "forward" : "backward";
    this.#ambient.metrics.ledgerClockJumped(direction);
    this.#ambient.log.warn("the ledger's clock jumped", { direction, byMs: Math.abs(byMs) });
  }

  /** A counter was refilled too early: for a boundary that is still this far in the future. */
  onRefillAhead(aheadMs: number): void {
    if (aheadMs <= clockJumpMs) return;
    this.#ambient.metrics.refillAhead();
    this.#ahead++;
    const nowMs = this.#ambient.clock.monotonicMs();
    if (nowMs - this.#reportedAtMs < reportEveryMs) return;
    this.#ambient.log.warn("a counter was refilled too early, and will not be at its next boundary", {
      aheadMs,
      settlements: this.#ahead,
    });
    this.#reportedAtMs = nowMs;
    this.#ahead = 0;
  }
}
