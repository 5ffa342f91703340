/** A clock that moves by more than this against a monotonic one was set, or its machine was changed for another. */
export const clockJumpMs = 5000;

/** No clock that is kept in step is slewed faster. */
const slewMax = 0.0005;

/** An answer that took longer tells too little of when its clock was read to be compared with later ones. */
const answerMaxMs = 1000;

/** What a clock elsewhere showed at some moment between two of this replica's monotonic clock. */
export interface ClockSighting {
  readonly shownMs: number;
  /** When the question was sent, and when the answer came. */
  readonly sentAtMs: number;
  readonly receivedAtMs: number;
}

/**
 * Notices jumps of a clock elsewhere. Each answer shows it at some unknown moment between question and answer, so that
 * how far it is ahead lies between two bounds; only bounds that exclude each other are a jump. So a process that was
 * stopped, or an answer that came late, is none. Where the whole machine slept, its monotonic clock stood still: that
 * time is asked for before a jump forward is believed.
 */
export class ClockJumps {
  #last: Bounds | undefined;
  #sleptMs: number;
  readonly #readSleptMs: () => number;

  /** `readSleptMs`: for how long this machine's monotonic clock has stood still, counted from any moment. */
  constructor(readSleptMs: () => number) {
    this.#readSleptMs = readSleptMs;
    this.#sleptMs = readSleptMs();
  }

  /** Answers by how much the clock has jumped since the answer before, forwards or (less than 0) backwards; else 0. */
  notice({ shownMs, sentAtMs, receivedAtMs }: ClockSighting): number {
    // Whole milliseconds are shown: it may have been almost one more.
    const seen = { leastMs: shownMs - receivedAtMs, mostMs: shownMs + 1 - sentAtMs, atMs: receivedAtMs };
    const last = this.#last;
    if (last === undefined || receivedAtMs - sentAtMs <= answerMaxMs) this.#last = seen;
    if (last === undefined) return 0;
    const allowedMs = clockJumpMs + Math.max(0, receivedAtMs - last.atMs) * slewMax;
    const backMs = last.leastMs - seen.mostMs;
    if (backMs > allowedMs) return this.#jumped(seen, -backMs);
    const forwardMs = seen.leastMs - last.mostMs;
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

/** By how much a clock is ahead of the monotonic one, at least and at most. */
interface Bounds {
  readonly leastMs: number;
  readonly mostMs: number;
  readonly atMs: number;
}
