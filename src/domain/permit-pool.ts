import { type Picked, unitsOf } from "./cost-queue.ts";
import { PermitDenials } from "./permit-denials.ts";
import * as tuning from "./permit-pool-tuning.ts";
import type { PermitMessage, PermitTake, PermitVerdict } from "./permit-verdict.ts";
import { type PermitGrant, runsMax } from "./permit-window.ts";
import { limitMax, type RateLimitState } from "./rate-limit.ts";

/**
 * One replica's permits for one subject: the replica's side of a strict rate limit. `PermitWindow` is the ledger's side.
 *
 * The guarantees. They hold for lost, late and repeated messages, pauses and crashes, with only a monotonic clock here:
 * - S1, never over the limit: every admission spends permits that the ledger had charged to the same window before: as
 *   many as its cost, or none.
 *   Permits to be returned leave the pool before their message is made, and a message is sent once. If its outcome is
 *   unknown, its permits are lost until the window ends. No timeout brings a permit back, on either side. Only the
 *   certainty that a message never was and never will be executed does (`notExecuted`).
 * - S2, never outside the window: the ledger says how long its window still lasts. The replica counts that from before
 *   it asked. After that time nothing of the window is spent or denied from memory, and a late grant is dropped. While
 *   the ledger's clock is known to be wrong, no permits are held: they go to requests that already wait, and a denial
 *   holds no longer than the window's duration.
 * - E1, filled: a request is denied for the rest of the window only if fewer permits are left than it costs, and no
 *   other replica holds any. Replicas return permits they do not need, and with the next message all that complete the
 *   cost of no request that waits: two replicas with a half each of what both need do not wait for each other. So without
 *   losses, enough demand of cost 1 uses exactly the limit. A larger cost leaves less than itself.
 * - C1, a lowered limit holds: after `limitChanged` only permits are spent that the ledger has charged under the new limit.
 *
 * The owner serializes all calls. After each call, and again at `nextDueMs`, it calls `nextAsk` and sends the message.
 * Fields are `protected` rather than `#private`: the model checker copies and compares pools, its mutants override them.
 */
export class PermitPool extends PermitDenials {
  /** From the ledger's last answer. */
  protected isContended = false;
  protected isRecalled = false;
  /** No message is sent before this: the pause after a message that brought nothing. */
  protected backoffUntilMs = 0;
  /** When surplus permits are returned and spent ones reported. */
  protected returnDueMs = 0;

  /** Asks for as many permits as the request costs, or none. Check and spend happen in one synchronous call. */
  take(nowMs: number, cost = 1): PermitTake {
    // Requests that wait want more than is held, so a cheaper one takes nothing from them.
    if (cost <= this.held && this.isOpen(nowMs)) {
      this.noteRequest(nowMs, cost);
      this.use(cost);
      return { outcome: "admitted", gen: this.gen };
    }
    if (nowMs < this.deniedUntilMs && cost > this.deniedAbove) {
      // Its cost needs no block: it would be refused again.
      this.noteRequest(nowMs, 1);
      return denied;
    }
    this.noteRequest(nowMs, cost);
    this.waiting.push(cost);
    return wait;
  }

  /** So many waiting requests have given up: the longest waiting. */
  cancelFirst(count: number): void {
    this.waiting.dropFirst(count);
  }

  /** The waiting request that came last has given up. */
  cancelLast(): void {
    this.waiting.dropLast();
  }

  /** The permits of a request were not used. In their own window they serve others; in a later window they are worthless. */
  release(gen: number, nowMs: number, cost = 1): PermitVerdict {
    this.unuse(gen, cost, nowMs);
    // What was shown without them is not the least that there was.
    if (gen === this.gen) this.shownMin += cost;
    return this.isOpen(nowMs) ? this.verdict(this.admitWaiting()) : this.verdict();
  }

  /** When the next message is due if nothing else happens. Undefined: none is, or an answer is waited for. */
  nextDueMs(nowMs: number): number | undefined {
    if (this.currentNumber !== 0) return undefined;
    if (this.waiting.length > 0) {
      const retryAtMs = this.waiting.smallest > this.reach ? this.retryAtMs : 0;
      return Math.max(nowMs, this.backoffUntilMs, retryAtMs, this.isTooLate(nowMs) ? this.nextWindowMs : 0);
    }
    if (!this.isOpen(nowMs)) return undefined;
    const dueMs = Math.max(nowMs, this.backoffUntilMs, this.isLow(nowMs) ? 0 : this.nextReturnMs());
    return dueMs < this.spendableUntilMs ? dueMs : undefined;
  }

  /** The message to send now, if any. Send it exactly once, then call `answered`, `lost` or `notExecuted` with it. */
  nextAsk(nowMs: number): PermitMessage | undefined {
    const dueMs = this.nextDueMs(nowMs);
    if (dueMs === undefined || dueMs > nowMs) return undefined;
    const waiting = this.waiting.firstRuns(runsMax, this.reach);
    const fetching = waiting.length > 0 || this.isLow(nowMs);
    const demandPerMs = this.isYielding(nowMs) ? 0 : this.demandPerMs(nowMs);
    const needed = Math.min(limitMax, demandPerMs * (this.blockMs() + this.rttMs));
    const { outdated, returned } = this.takeReturned(this.surplus(needed, fetching, nowMs));
    const inAdvance = fetching ? Math.max(0, Math.round(needed) - this.held) : 0;
    const spent = this.spent;
    this.spent = 0;
    this.isRecalled = false;
    return {
      number: this.startMessage(),
      sentAtMs: nowMs,
      outdated,
      ask: { waiting, inAdvance, gen: this.gen, returned, spent, holders: 1 },
    };
  }

  /** The ledger's answer. An answer to a message that is not under way, such as a second copy, changes nothing. */
  answered(message: PermitMessage, grant: PermitGrant, nowMs: number): PermitVerdict {
    if (!this.isUnderWay(message)) return this.verdict();
    // The delay of an overdue answer says nothing about the next message, which takes another way.
    if (message.number === this.currentNumber) this.noteRoundTrip(nowMs - message.sentAtMs);
    this.endMessage(message);
    this.returnDueMs = nowMs + tuning.holdMs;

    const spendableUntilMs = this.expiry(message, grant, nowMs);
    if (grant.endsInMs === 0) return this.onNoWindow(message, grant);
    if (nowMs >= spendableUntilMs) return this.verdict();
    const isLast = message.number === this.lastMessageNumber;
    // A later message may have told of a later window, whose permits must not be dropped for these.
    if (!isLast && grant.gen < this.gen) return this.verdict();
    const isNews = isLast || grant.gen !== this.gen;
    if (grant.gen !== this.gen) this.startWindow(grant.gen);
    // Each answer proves that the window lasts at least until some time, so the latest of these times counts. A clock
    // that is behind proves nothing.
    if (!grant.clockBehind) this.spendableUntilMs = Math.max(this.spendableUntilMs, spendableUntilMs);
    this.addGranted(message, grant.granted);
    if (isNews) this.takeNews(message, grant, spendableUntilMs);
    else if (!this.isClockBehind) this.windowEndsMs = this.spendableUntilMs;
    const elsewhere = this.heldElsewhere(message, grant);
    const admitted = this.admitWaiting();
    this.noteReach();
    // By a limit that has been replaced since nothing is refused: those who wait are asked for again.
    const short = this.knowsOldLimit(message) ? undefined : this.waiting.smallestAbove(this.reach);
    return short === undefined ? this.verdict(admitted) : this.onShortage(admitted, short, elsewhere, nowMs);
  }

  /** The outcome of the message is unknown. Its permits are never sent again; waiting requests cause a new message. */
  lost(message: PermitMessage, nowMs: number): void {
    if (!this.isUnderWay(message)) return;
    this.endMessage(message);
    this.pauseAttempts(nowMs);
  }

  /**
   * The message was not executed and never will be: it was not sent, or it was refused. What it returned and reported is
   * still here. Never call this for a message that may have been executed: its permits would exist twice.
   */
  notExecuted(message: PermitMessage, nowMs: number): PermitVerdict {
    if (!this.isUnderWay(message)) return this.verdict();
    this.endMessage(message);
    this.pauseAttempts(nowMs);
    if (message.ask.gen !== this.gen || !this.isOpen(nowMs)) return this.verdict();
    this.restore(message);
    return this.verdict(this.admitWaiting());
  }

  /** Another replica wants permits, or this one stops: the next message returns all of them, and waits for nothing but a backoff. */
  recall(): void {
    this.isRecalled = true;
  }

  /**
   * The subject's limit was changed: denials under the old limit no longer hold, nor does what answers tell that are already
   * on their way. No permit from before is spent any more: the new limit may be lower than what has been charged.
   */
  limitChanged(): void {
    this.forgetLimit();
    this.outdateAll();
    this.forgetDenials();
    this.backoffUntilMs = 0;
    this.retryAtMs = 0;
  }

  /** The subject was deleted: no request waits any more, and no permit, held or in a coming answer, may be spent. */
  drop(): void {
    this.startWindow(this.gen);
    this.waiting.clear();
    this.endAllMessages();
  }

  /** What the caller is shown: one that is refused, less than it costs (`below`). Undefined if no window is open. */
  state(nowMs: number, callersLimit: number, below = Number.POSITIVE_INFINITY): RateLimitState | undefined {
    return this.shows(this.gen, nowMs) ? this.shown(this.permitsHeld, callersLimit, below) : undefined;
  }

  /** Whether it is this window that callers are shown. */
  shows(gen: number, nowMs: number): boolean {
    return gen === this.gen && nowMs < this.windowEndsMs;
  }

  /** The time left in the window, if the ledger's clock is known to be wrong: then `state().resetMs` cannot be used. */
  remainingWindowMs(nowMs: number): number | undefined {
    return this.isClockBehind ? this.windowEndsMs - nowMs : undefined;
  }

  /** Whether a new pool can replace it: no waiting request, no unanswered message, its window long over. */
  isIdle(nowMs: number): boolean {
    const isUsed = this.waiting.length > 0 || this.hasMessages || this.isOpen(nowMs);
    return !isUsed && nowMs >= this.windowEndsMs + tuning.keptAfterWindowMs;
  }

  /** Whether other replicas lack permits, or requests here have stopped: then only waiting requests get permits here. */
  protected isYielding(nowMs: number): boolean {
    return this.isOpen(nowMs) && (this.isContended || this.isRecalled || nowMs >= this.rateAtMs + this.idleAfterMs());
  }

  protected pauseAttempts(nowMs: number): void {
    this.backoffUntilMs = nowMs + tuning.holdMs;
    this.returnDueMs = nowMs + tuning.holdMs;
  }

  /** What the ledger said about the window, unless a later message was made: its answer says or has said it. */
  protected takeNews(message: PermitMessage, grant: PermitGrant, spendableUntilMs: number): void {
    this.windowEndsMs = grant.clockBehind ? spendableUntilMs : this.spendableUntilMs;
    this.isClockBehind = grant.clockBehind;
    this.noteWindowEnd(message.sentAtMs + grant.endsInMs, grant.clockBehind);
    this.noteTold(message, grant);
    this.isContended = grant.contended;
  }

  /**
   * Permits that other replicas hold, because this one has returned, reported and got nothing else since it sent the
   * message. If another message was under way meanwhile, its part is not known: then some permit may be elsewhere.
   */
  protected heldElsewhere(message: PermitMessage, { outstanding }: PermitGrant): number {
    return this.wasAlone(message) ? outstanding - this.permitsHeld - this.inUse - this.spent : 1;
  }

  /** Counted from before the ledger read its clock. A little early: for a slow clock here, and for the ledger's tick. */
  protected expiry(message: PermitMessage, grant: PermitGrant, _nowMs: number): number {
    const remainingWindowMs = Math.min(grant.endsInMs, grant.durationMs);
    return message.sentAtMs + (remainingWindowMs - tuning.ledgerTickMs) * tuning.clockSpeedMargin;
  }

  protected startWindow(gen: number): void {
    this.startStock(gen);
    this.windowEndsMs = 0;
    this.nextWindowMs = 0;
    this.isClockBehind = false;
    this.isContended = false;
    this.isRecalled = false;
    this.forgetDenials();
    this.shownMin = Number.POSITIVE_INFINITY;
  }

  protected admitWaiting(): readonly Picked[] {
    const admitted = this.waiting.takeFitting(this.held);
    this.use(unitsOf(admitted));
    return admitted;
  }

  /**
   * How many of the held permits the next message returns. While requests wait, all: they complete the cost of none of
   * them, and may be just what another replica lacks. Otherwise those that demand does not need.
   */
  protected surplus(needed: number, fetching: boolean, nowMs: number): number {
    // While the ledger's clock is behind, nothing can be spent, but it still counts in the ledger.
    if (this.waiting.length > 0) return this.isOpen(nowMs) || nowMs < this.windowEndsMs ? this.held : 0;
    return fetching || !this.isOpen(nowMs) ? 0 : Math.max(0, this.held - Math.floor(needed));
  }

  /** Whether to fetch a block now, before requests have to wait for it. */
  protected isLow(nowMs: number): boolean {
    if (this.isYielding(nowMs) || this.leftInLedger === 0 || this.isTooLate(nowMs)) return false;
    return this.held + 1 <= this.neededUntilAnswer(nowMs);
  }

  /** When permits are returned. Outdated or recalled: now. Contended: at `returnDueMs`. Else when decaying demand needs half of them. */
  protected nextReturnMs(): number {
    if (this.outdated > 0) return 0;
    const yielding = this.isContended || this.isRecalled;
    if (this.held === 0 && !(yielding && this.spent > 0)) return Number.POSITIVE_INFINITY;
    if (yielding) return this.isRecalled ? 0 : this.returnDueMs;
    const needed = this.unitsPerMs * (this.blockMs() + this.rttMs);
    const surplusMs = tuning.demandMemoryMs * Math.log((2 * needed) / this.held);
    return Math.max(this.returnDueMs, this.rateAtMs + Math.min(surplusMs, this.idleAfterMs()));
  }
}

const denied = { outcome: "denied" } as const;
const wait = { outcome: "wait" } as const;
