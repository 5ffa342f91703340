import { InvalidMessage } from "../wire.ts";

/**
 * How old the calls of one stream are. An edge sends back the coordinator's own time, so no two clocks are compared. A
 * call can wait in a network or a kernel until its edge has given up on it; executed then, it would take permits or uses
 * that no request gets.
 */
export class AskAge {
  readonly #lateMs: number;
  #lowestMs = Number.POSITIVE_INFINITY;

  /** A call may be this much older than the quickest one of its stream. */
  constructor(lateMs: number) {
    this.#lateMs = lateMs;
  }

  /** The lowest round trip of the stream so far; undefined until there was one. */
  get roundTripMs(): number | undefined {
    return Number.isFinite(this.#lowestMs) ? this.#lowestMs : undefined;
  }

  /** When a call that arrives now is too old, by the coordinator's clock. */
  expiresAtMs(seen: { readonly seenTimeMs: number; readonly seenAgeMs: number }, nowMs: number): number {
    const { seenTimeMs, seenAgeMs } = seen;
    if (!Number.isFinite(seenTimeMs) || !(seenAgeMs >= 0)) throw new InvalidMessage("an impossible time");
    if (seenTimeMs === 0) return Number.POSITIVE_INFINITY;
    // The way of the last message from here to the edge, and the way of the call back.
    const roundTripMs = Math.max(0, nowMs - seenTimeMs - seenAgeMs);
    this.#lowestMs = Math.min(this.#lowestMs, roundTripMs);
    return nowMs - roundTripMs + this.#lowestMs + this.#lateMs;
  }
}
