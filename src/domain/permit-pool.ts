import * as tuning from "./permit-pool-tuning.ts";
import type { PermitMessage, PermitTake, PermitVerdict } from "./permit-verdict.ts";
import type { PermitGrant } from "./permit-window.ts";
import type { RateLimitState } from "./rate-limit.ts";

/**
 * One replica's permits for one key: the holder's side of a strict rate limit, as `PermitWindow` is the ledger's.
 *
 * What holds, whatever is lost, late, repeated, paused or crashed, and with no clock but this replica's monotonic one:
 * - S1, never over: every admission spends one permit that the ledger had charged to that same window before. Permits
 *   that go back leave the pool before the message exists (zero first, then send), and a message is made once: when its
 *   fate is unknown, what it carried is gone until the window ends. No timeout brings a permit back, on either side.
 * - S2, never outside the window: the ledger says how long its window still lasts, and that is counted from before the
 *   question was sent. From then on nothing of the window is spent or denied from memory, and a grant that arrives later
 *   than that is thrown away. While the ledger's clock is known to be wrong, its word lets nothing be held: permits go to
 *   those who wait when they arrive, and a denial is remembered for no longer than the window's duration.
 * - E1, filled: a request is denied for the rest of the window only when nothing is to be had and nobody holds a permit;
 *   whoever does not need his gives them up. So without losses, enough demand uses exactly the limit.
 *
 * The owner serializes all calls, asks for `nextAsk` after each of them and again at `nextDueMs`, and sends what it gets.
 * Fields are `protected` rather than `#private`: the model checker copies and compares pools, its mutants override them.
 */
export class PermitPool {
  /** The window that every count below belongs to. */
  protected gen = 0;
  /** Until when its permits may be spent. 0: no window. */
  protected expiresAtMs = 0;
  /**
   * Until when the window lasts, as the ledger said last: until then what is known of it is told, and denials hold. The
   * same as the above, but for answers of a ledger whose clock is behind.
   */
  protected lastsUntilMs = 0;
  /** Permits to spend. There are none in an open window while anybody waits. */
  protected held = 0;
  /** Permits taken whose use is neither charged nor refused yet. */
  protected inUse = 0;
  /** Permits whose use was charged, and that the ledger was not told of. */
  protected spent = 0;
  protected waiting = 0;

  /** What the ledger said last. */
  protected left = 0;
  protected limit = 0;
  protected endsAtMs = 0;
  protected clockBehind = false;
  protected contended = false;
  /** The least `remaining` that was shown in this window. */
  protected shownLeast = Number.POSITIVE_INFINITY;

  protected recalled = false;
  protected underWay = false;
  /** Numbers the messages, so that no late or second answer is taken for that of the one under way. */
  protected messages = 0;
  /** No message before this: the pause between tries. */
  protected quietUntilMs = 0;
  /** When permits that are not needed go back, and spent ones are reported. */
  protected tidyDueMs = 0;
  /** Since when answers leave somebody waiting. 0: they do not. */
  protected shortSinceMs = 0;
  protected deniedUntilMs = 0;

  /** From when on a message likely finds the next window: a guess, so that the first ask for it is not in vain. */
  protected nextOpensMs = 0;
  protected rttMs = 0;
  protected ratePerMs = 0;
  protected rateAtMs = 0;

  /** Asks for one permit. Check and spend are one turn: no other call comes between them. */
  take(nowMs: number): PermitTake {
    this.ratePerMs = this.demandPerMs(nowMs) + 1 / tuning.demandMemoryMs;
    this.rateAtMs = nowMs;
    if (this.held > 0 && this.waiting === 0 && this.isOpen(nowMs)) {
      this.held--;
      this.inUse++;
      return { outcome: "admitted", gen: this.gen };
    }
    if (nowMs < this.deniedUntilMs) return denied;
    this.waiting++;
    return wait;
  }

  /** Somebody who waited is gone. */
  leave(): void {
    if (this.waiting > 0) this.waiting--;
  }

  /** The use of a permit was charged: only now it counts as spent. */
  charged(gen: number): void {
    if (gen !== this.gen || this.inUse === 0) return;
    this.inUse--;
    this.spent++;
  }

  /** The use of a permit was refused. In its own window it serves somebody else, in a later one it is worth nothing. */
  giveBack(gen: number, nowMs: number): PermitVerdict {
    if (gen !== this.gen || this.inUse === 0) return this.verdict(0);
    this.inUse--;
    if (!this.isOpen(nowMs)) return this.verdict(0);
    this.held++;
    return this.verdict(this.serve());
  }

  /** When there will be something to send, if nothing else happens. Undefined: nothing, or a message is under way. */
  nextDueMs(nowMs: number): number | undefined {
    if (this.underWay) return undefined;
    if (this.waiting > 0) return Math.max(nowMs, this.quietUntilMs, this.isTooLate(nowMs) ? this.nextOpensMs : 0);
    if (!this.isOpen(nowMs)) return undefined;
    const dueMs = Math.max(nowMs, this.quietUntilMs, this.isLow(nowMs) ? 0 : this.nextTidyMs());
    return dueMs < this.expiresAtMs ? dueMs : undefined;
  }

  /** The message to send now, if there is one. It is made once: send it once, then call `answered` or `lost` with it. */
  nextAsk(nowMs: number): PermitMessage | undefined {
    const dueMs = this.nextDueMs(nowMs);
    if (dueMs === undefined || dueMs > nowMs) return undefined;
    const fetching = this.waiting > 0 || this.isLow(nowMs);
    const demandPerMs = this.isYielding(nowMs) ? 0 : this.demandPerMs(nowMs);
    const needed = demandPerMs * (this.blockMs() + this.rttMs);
    const inAdvance = fetching ? Math.max(0, Math.round(needed) - this.held) : 0;
    const returned = this.isOpen(nowMs) && !fetching ? Math.max(0, this.held - Math.floor(needed)) : 0;
    const spent = this.spent;
    this.held -= returned;
    this.spent = 0;
    this.recalled = false;
    this.underWay = true;
    this.messages++;
    return {
      number: this.messages,
      sentAtMs: nowMs,
      ask: { wantMin: this.waiting, wantMax: this.waiting + inAdvance, gen: this.gen, returned, spent, holders: 1 },
    };
  }

  /** The ledger's answer. Any other than that to the message under way changes nothing. */
  answered(message: PermitMessage, grant: PermitGrant, nowMs: number): PermitVerdict {
    if (!this.isUnderWay(message)) return this.verdict(0);
    this.underWay = false;
    this.tidyDueMs = nowMs + tuning.holdMs;
    const sampleMs = nowMs - message.sentAtMs;
    this.rttMs = this.rttMs === 0 ? sampleMs : this.rttMs + (sampleMs - this.rttMs) * tuning.rttWeight;

    const expiresAtMs = this.expiry(message, grant, nowMs);
    if (nowMs >= expiresAtMs) return this.verdict(0);
    if (grant.gen !== this.gen) this.enter(grant.gen);
    // Each answer proves a time until which the window lasts; the latest of them is still within it. A clock that is
    // behind proves nothing.
    if (!grant.clockBehind) this.expiresAtMs = Math.max(this.expiresAtMs, expiresAtMs);
    this.lastsUntilMs = grant.clockBehind ? expiresAtMs : this.expiresAtMs;
    this.clockBehind = grant.clockBehind;
    this.nextOpensMs = message.sentAtMs + grant.endsInMs + this.rttMs * tuning.jitterShare;
    this.held += grant.granted;
    this.left = grant.left;
    this.limit = grant.limit;
    this.endsAtMs = grant.endsAtMs;
    this.contended = grant.contended;
    // Nothing of this replica's moved out of the sum since it sent the message: the rest is held by others.
    const elsewhere = grant.outstanding - this.held - this.inUse - this.spent;
    const admitted = this.serve();
    if (this.waiting === 0) this.shortSinceMs = 0;
    return this.waiting === 0 || this.left > 0 ? this.verdict(admitted) : this.short(admitted, elsewhere, nowMs);
  }

  /** Nobody knows what became of the message. What it carried is never sent again; the waiting will ask anew. */
  lost(message: PermitMessage, nowMs: number): void {
    if (!this.isUnderWay(message)) return;
    this.underWay = false;
    this.quietUntilMs = nowMs + tuning.holdMs;
    this.tidyDueMs = nowMs + tuning.holdMs;
  }

  /** Somebody else wants permits, or this replica stops: the next message goes out now and takes all of them back. */
  recall(): void {
    this.recalled = true;
  }

  /** The key has another limit: what was known of the old one's end is worth nothing. */
  limitChanged(): void {
    this.deniedUntilMs = 0;
    this.shortSinceMs = 0;
    this.quietUntilMs = 0;
    this.shownLeast = Number.POSITIVE_INFINITY;
  }

  /** The key is deleted: nobody waits any more, and nothing that is held or on its way may be spent. */
  drop(): void {
    this.enter(this.gen);
    this.waiting = 0;
    this.underWay = false;
  }

  /** For the answer. Undefined when no window is open. Remembers what it showed, so that `remaining` never rises. */
  state(nowMs: number): RateLimitState | undefined {
    if (nowMs >= this.lastsUntilMs) return undefined;
    this.shownLeast = Math.min(this.shownLeast, this.left + this.held);
    return { limit: this.limit, remaining: this.shownLeast, resetMs: this.endsAtMs };
  }

  /** Time to the window's end, where the one that `state` tells is by a clock known to be wrong; else undefined. */
  endsInMs(nowMs: number): number | undefined {
    return this.clockBehind ? this.lastsUntilMs - nowMs : undefined;
  }

  /** Permits that could be spent at once, if their window is open. */
  get permitsHeld(): number {
    return this.held;
  }

  /** Whether a new pool would do as well: nobody waits, nothing is under way and no window is open. */
  isIdle(nowMs: number): boolean {
    return this.waiting === 0 && !this.underWay && !this.isOpen(nowMs) && nowMs >= this.lastsUntilMs;
  }

  protected isOpen(nowMs: number): boolean {
    return nowMs < this.expiresAtMs;
  }

  /** Whether others are short, or nobody asks here any more: then only those who wait here are worth a permit. */
  protected isYielding(nowMs: number): boolean {
    return this.isOpen(nowMs) && (this.contended || this.recalled || nowMs >= this.rateAtMs + this.idleAfterMs());
  }

  protected isUnderWay(message: PermitMessage): boolean {
    return this.underWay && message.number === this.messages;
  }

  /** Counted from before the ledger read its clock, and a little short: for a clock here that runs slow, and its tick. */
  protected expiry(message: PermitMessage, grant: PermitGrant, _nowMs: number): number {
    const endsInMs = Math.min(grant.endsInMs, grant.durationMs);
    return message.sentAtMs + (endsInMs - tuning.ledgerTickMs) * tuning.clockTrust;
  }

  protected enter(gen: number): void {
    this.gen = gen;
    this.expiresAtMs = 0;
    this.lastsUntilMs = 0;
    this.clockBehind = false;
    this.contended = false;
    this.recalled = false;
    this.held = 0;
    this.inUse = 0;
    this.spent = 0;
    this.deniedUntilMs = 0;
    this.shortSinceMs = 0;
    this.shownLeast = Number.POSITIVE_INFINITY;
  }

  protected serve(): number {
    const admitted = Math.min(this.held, this.waiting);
    this.held -= admitted;
    this.inUse += admitted;
    this.waiting -= admitted;
    return admitted;
  }

  /** Nothing is left and some still wait. They are denied when no permit can come back, or none came for too long. */
  protected short(admitted: number, elsewhere: number, nowMs: number): PermitVerdict {
    const settled = elsewhere <= 0 && this.inUse === 0;
    if (this.shortSinceMs === 0) this.shortSinceMs = nowMs;
    const shortMs = nowMs - this.shortSinceMs;
    if (!settled && shortMs < tuning.holdMs + 2 * this.rttMs) {
      this.quietUntilMs = nowMs + Math.min(tuning.retryMaxMs, Math.max(tuning.retryMinMs, shortMs / 2));
      return this.verdict(admitted);
    }
    // Permits that a crash stranded never come back: ask for them ever more rarely, but some times before the end.
    const pauseMs = Math.max(tuning.holdMs, Math.min(shortMs, (this.lastsUntilMs - nowMs) / tuning.probes));
    const memoryMs = settled ? (this.clockBehind ? tuning.behindMs : Number.POSITIVE_INFINITY) : pauseMs;
    this.deniedUntilMs = Math.min(this.lastsUntilMs, nowMs + memoryMs);
    const turnedAway = this.waiting;
    this.waiting = 0;
    return this.verdict(admitted, turnedAway, settled);
  }

  protected verdict(admitted: number, turnedAway = 0, settled = false): PermitVerdict {
    return { gen: this.gen, admitted, denied: turnedAway, settled };
  }

  protected demandPerMs(nowMs: number): number {
    return this.ratePerMs * Math.exp((this.rateAtMs - nowMs) / tuning.demandMemoryMs);
  }

  /** For how long nobody asks before that means that nobody will. */
  protected idleAfterMs(): number {
    return Math.max(tuning.idleMinMs, tuning.idlePauses / this.ratePerMs);
  }

  /** For how long a block is meant to last. */
  protected blockMs(): number {
    return Math.max(tuning.blockMinMs, 2 * this.rttMs);
  }

  /** Whether an answer to a message sent now would come after the end of the window that it finds open. */
  protected isTooLate(nowMs: number): boolean {
    return nowMs < this.nextOpensMs && nowMs + this.rttMs >= this.nextOpensMs;
  }

  /** Whether to fetch a block before anybody waits for it. */
  protected isLow(nowMs: number): boolean {
    if (this.isYielding(nowMs) || this.left === 0 || this.isTooLate(nowMs)) return false;
    const meanUntilAnswer = this.demandPerMs(nowMs) * this.rttMs;
    return this.held + 1 <= meanUntilAnswer + tuning.lowMarkDeviations * Math.sqrt(meanUntilAnswer);
  }

  /** Once others are short everything goes back; otherwise what is not needed, when that is half of it or more. */
  protected nextTidyMs(): number {
    const yielding = this.contended || this.recalled;
    if (this.held === 0 && !(yielding && this.spent > 0)) return Number.POSITIVE_INFINITY;
    if (yielding) return this.recalled ? 0 : this.tidyDueMs;
    const needed = this.ratePerMs * (this.blockMs() + this.rttMs);
    const surplusMs = tuning.demandMemoryMs * Math.log((2 * needed) / this.held);
    return Math.max(this.tidyDueMs, this.rateAtMs + Math.min(surplusMs, this.idleAfterMs()));
  }
}

const denied = { outcome: "denied" } as const;
const wait = { outcome: "wait" } as const;
