import { permitTimeoutMs } from "./deadlines.ts";
import * as tuning from "./permit-pool-tuning.ts";

/** A pool's estimates: how many requests come, what they cost, and how long an answer takes. They size blocks; nothing depends on them. */
export class PermitDemand {
  protected rttMs = 0;
  /** Requests, their costs, and the squares of their costs, which tell how far a sum of costs varies. As of `rateAtMs`. */
  protected ratePerMs = 0;
  protected unitsPerMs = 0;
  protected squaresPerMs = 0;
  protected rateAtMs = 0;
  /** When the next window probably opens, so that the first message for it does not come too early. */
  protected nextWindowMs = 0;

  protected noteRequest(nowMs: number, cost: number): void {
    const rest = this.restOfMemory(nowMs);
    this.ratePerMs = this.ratePerMs * rest + 1 / tuning.demandMemoryMs;
    this.unitsPerMs = this.unitsPerMs * rest + cost / tuning.demandMemoryMs;
    this.squaresPerMs = this.squaresPerMs * rest + (cost * cost) / tuning.demandMemoryMs;
    this.rateAtMs = nowMs;
  }

  protected noteRoundTrip(sampleMs: number): void {
    this.rttMs = this.rttMs === 0 ? sampleMs : this.rttMs + (sampleMs - this.rttMs) * tuning.rttWeight;
  }

  /**
   * The window ends so long after the message was sent, or later by the time that the message took to the ledger. So the
   * latest of these times is the best. A clock that is behind proves nothing.
   */
  protected noteWindowEnd(earliestMs: number, isClockBehind: boolean): void {
    const nextMs = earliestMs + this.rttMs * tuning.jitterShare;
    this.nextWindowMs = isClockBehind ? nextMs : Math.max(this.nextWindowMs, nextMs);
  }

  /** Permits that are needed in a millisecond. */
  protected demandPerMs(nowMs: number): number {
    return this.unitsPerMs * this.restOfMemory(nowMs);
  }

  /** As many permits as will probably do for the requests of the next round trip. */
  protected neededUntilAnswer(nowMs: number): number {
    const ms = this.rttMs * this.restOfMemory(nowMs);
    return this.unitsPerMs * ms + tuning.lowMarkDeviations * Math.sqrt(this.squaresPerMs * ms);
  }

  private restOfMemory(nowMs: number): number {
    return Math.exp((this.rateAtMs - nowMs) / tuning.demandMemoryMs);
  }

  /** After this time without requests the replica counts as idle. */
  protected idleAfterMs(): number {
    return Math.max(tuning.idleMinMs, tuning.idlePausesMin / this.ratePerMs);
  }

  /** How much demand one block should cover. */
  protected blockMs(): number {
    return Math.max(tuning.blockMinMs, 2 * this.rttMs);
  }

  /**
   * How long to go on asking for permits that others hold. Requests that wait are refused before they give up, and that is
   * remembered: when the first answer comes short, the oldest of them may have waited for two round trips, and the next
   * answer takes one more.
   */
  protected shortMaxMs(): number {
    const inTimeMs = permitTimeoutMs(this.rttMs) - 3 * this.rttMs - tuning.retryMaxMs;
    return Math.min(tuning.holdMs + 2 * this.rttMs, inTimeMs);
  }

  /** Whether the answer to a message sent now would arrive after the end of the current window. */
  protected isTooLate(nowMs: number): boolean {
    return nowMs < this.nextWindowMs && nowMs + this.rttMs >= this.nextWindowMs;
  }
}
