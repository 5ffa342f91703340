/** How long the lowest reply time counts after a higher one. The path may have become longer. */
const windowMs = 10_000;

/** The round trip to the database: the lowest time that a reply took lately, whatever the server did meanwhile. */
export class RoundTrip {
  #lowestMs = Number.POSITIVE_INFINITY;
  #lowestBeforeMs = Number.POSITIVE_INFINITY;
  #windowStartMs = Number.NEGATIVE_INFINITY;

  /** 0 until a reply has come. */
  get ms(): number {
    const lowestMs = Math.min(this.#lowestMs, this.#lowestBeforeMs);
    return lowestMs === Number.POSITIVE_INFINITY ? 0 : lowestMs;
  }

  onReply(tookMs: number, nowMs: number): void {
    if (nowMs - this.#windowStartMs > windowMs) {
      this.#windowStartMs = nowMs;
      this.#lowestBeforeMs = this.#lowestMs;
      this.#lowestMs = tookMs;
    } else if (tookMs < this.#lowestMs) {
      this.#lowestMs = tookMs;
    }
  }
}

/** Within this time a look-up is answered, or its caller gets 503. */
export function lookupDeadlineMs(roundTripMs: number): number {
  return Math.max(500, 1.5 * roundTripMs + 100);
}

/** What a call needs besides its look-up. */
const restMs = 60;

/** How long a statement of look-ups may take at least. */
export function lookupStatementMs(roundTripMs: number): number {
  return Math.max(200, 1.2 * roundTripMs + 20);
}

/** How long a look-up may wait until its statement is sent: for its turn, and then for a connection. */
export function lookupQueuedMs(roundTripMs: number): number {
  return Math.max(restMs, lookupDeadlineMs(roundTripMs) - restMs - lookupStatementMs(roundTripMs));
}

/** How long a batch of a lane is tried, with so many statements, if the settings give it less. */
export function batchTimeoutMs(roundTripMs: number, statements: number): number {
  return 1.5 * roundTripMs * statements + 100;
}
