/** A clock that moves by more than this against a monotonic clock was set, or another machine took over. */
export const clockJumpMs = 5000;

/** Time synchronisation never slews a clock faster than this. */
const slewMax = 0.0005;

/** A slower answer is not compared with later ones: it does not show well enough when the clock was read. */
const answerMaxMs = 1000;

/** What a remote clock showed, at some moment between two readings of this replica's monotonic clock. */
export interface ClockReading {
  readonly ledgerMs: number;
  /** When the question was sent, and when the answer came. */
  readonly sentAtMs: number;
  readonly receivedAtMs: number;
}

/**
 * Detects jumps of a remote clock. Each answer shows the clock at an unknown moment between question and answer, so its
 * offset is known only as a range. A jump is reported only if two ranges do not overlap: a paused process or a late
 * answer is no jump. While this machine sleeps its monotonic clock stands still, so the time slept is subtracted before
 * a jump forward is reported.
 */
export class ClockJumps {
  #last: Bounds | undefined;
  #sleptMs: number;
  readonly #readSleptMs: () => number;

  /** `readSleptMs`: how long this machine's monotonic clock has stood still, counted from any fixed moment. */
  constructor(readSleptMs: () => number) {
    this.#readSleptMs = readSleptMs;
    this.#sleptMs = readSleptMs();
  }

  /** Returns how far the clock has jumped since the previous answer: forward above 0, backward below 0, else 0. */
  detect({ ledgerMs, sentAtMs, receivedAtMs }: ClockReading): number {
    // The clock shows whole milliseconds: the true time may be almost one more.
    const seen = { minMs: ledgerMs - receivedAtMs, maxMs: ledgerMs + 1 - sentAtMs, atMs: receivedAtMs };
    const last = this.#last;
    if (last === undefined || receivedAtMs - sentAtMs <= answerMaxMs) this.#last = seen;
    if (last === undefined) return 0;
    const allowedMs = clockJumpMs + Math.max(0, receivedAtMs - last.atMs) * slewMax;
    const backMs = last.minMs - seen.maxMs;
    if (backMs > allowedMs) return this.#jumped(seen, -backMs);
    const forwardMs = seen.minMs - last.maxMs;
    if (forwardMs <= allowedMs) return 0;
    const awakeMs = forwardMs - this.#justSleptMs();
    return awakeMs > allowedMs ? this.#jumped(seen, awakeMs) : 0;
  }

  #jumped(seen: Bounds, byMs: number): number {
    this.#last = seen;
    return Math.round(byMs);
  }

  #justSleptMs(): number {
    const beforeMs = this.#sleptMs;
    this.#sleptMs = this.#readSleptMs();
    return Math.max(0, this.#sleptMs - beforeMs);
  }
}

/** The smallest and largest possible offset of a clock from the monotonic one. */
interface Bounds {
  readonly minMs: number;
  readonly maxMs: number;
  readonly atMs: number;
}
