/** A coordinator sends a message at least this often. */
const everyMs = 50;
/** How much longer than usual it may take until the coordinator counts as silent. */
const lateMs = 250;
/** A coordinator that stutters gets no more time than this. */
const usualGapMaxMs = 250;
/** How much of a long gap counts after the next message. It is as good as forgotten after three seconds. */
const gapMemory = 0.95;

/** Judges by the times of a coordinator's messages whether it has fallen silent. */
export class Heartbeat {
  #lastMessageAtMs = Number.NaN;
  #usualGapMs = everyMs;

  onMessage(nowMs: number): void {
    const gapMs = Number.isNaN(this.#lastMessageAtMs) ? everyMs : nowMs - this.#lastMessageAtMs;
    this.#usualGapMs = Math.min(usualGapMaxMs, Math.max(everyMs, gapMs, this.#usualGapMs * gapMemory));
    this.#lastMessageAtMs = nowMs;
  }

  /** Time since the last message. */
  silentMs(nowMs: number): number {
    return nowMs - this.#lastMessageAtMs;
  }

  isSilent(nowMs: number): boolean {
    return this.silentMs(nowMs) > this.#usualGapMs + lateMs;
  }

  /** For a new stream. */
  reset(): void {
    this.#lastMessageAtMs = Number.NaN;
    this.#usualGapMs = everyMs;
  }
}
