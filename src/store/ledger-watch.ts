import type { Ambient } from "../ambient/ambient.ts";
import { sleptMs } from "../ambient/clock.ts";
import { ClockJumps, type ClockSighting, clockJumpMs } from "../domain/clock-jumps.ts";

/** Counters with early refills are told of at most this often. */
const toldEveryMs = 60_000;

/**
 * Raises the alarm when the ledger's clock is wrong: windows and refills go by it. One for all lanes of a process, so
 * that a jump is told once. How to put things right again: docs/operations.md.
 */
export class LedgerWatch {
  readonly #ambient: Pick<Ambient, "clock" | "log" | "metrics">;
  readonly #jumps: ClockJumps;
  #ahead = 0;
  #toldAtMs = Number.NEGATIVE_INFINITY;

  constructor(ambient: Pick<Ambient, "clock" | "log" | "metrics">, readSleptMs = sleptMs) {
    this.#ambient = ambient;
    this.#jumps = new ClockJumps(readSleptMs);
  }

  /** An answer of the ledger showed its clock. */
  sawClock(sighting: ClockSighting): void {
    const byMs = this.#jumps.notice(sighting);
    if (byMs === 0) return;
    const direction = byMs > 0 ? "forward" : "backward";
    this.#ambient.metrics.ledgerClockJumped(direction);
    this.#ambient.log.warn("the ledger's clock jumped", { direction, byMs: Math.abs(byMs) });
  }

  /** A counter holds the refill of a boundary that is this far in the ledger's future: it came too early. */
  sawRefillAhead(aheadMs: number): void {
    if (aheadMs <= clockJumpMs) return;
    this.#ambient.metrics.refillAhead();
    this.#ahead++;
    const nowMs = this.#ambient.clock.monotonicMs();
    if (nowMs - this.#toldAtMs < toldEveryMs) return;
    this.#ambient.log.warn("a counter was refilled too early, and will not be at its next boundary", {
      aheadMs,
      settlements: this.#ahead,
    });
    this.#toldAtMs = nowMs;
    this.#ahead = 0;
  }
}
