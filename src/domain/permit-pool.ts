import { createCostQueue, type Picked } from "./cost-queue.ts";
import * as tuning from "./permit-pool-tuning.ts";
import type { PermitAsk } from "./permit-window.ts";
import type { RateLimitState } from "./rate-limit.ts";

/**
 * One replica's permits for one subject: the replica's side of a strict rate limit. `PermitWindow` is the ledger's side.
 *
 * The guarantees. They hold for lost, late and repeated messages, pauses and crashes, with only a monotonic clock here:
 * - S1, never over the limit: every admission spends permits that the ledger had charged to the same window before: as
 *   many as its cost, or none.
 *   Permits to be returned leave the pool before their message is made, and a message is sent once. If its outcome is
 *   unknown, its permits are lost until the window ends. No timeout brings a permit back, on either side. Only the
 *   certainty that a message never was and never will be executed does (`settleNotExecuted`).
 * - S2, never outside the window: the ledger says how long its window still lasts. The replica counts that from before
 *   it asked. After that time nothing of the window is spent or denied from memory, and a late grant is dropped. While
 *   the ledger's clock is known to be wrong, no permits are held: they go to requests that already wait, and a denial
 *   holds no longer than the window's duration.
 * - E1, filled: a request is denied for the rest of the window only if fewer permits are left than it costs, and no
 *   other replica holds any. Replicas return permits they do not need, and with the next message all that complete the
 *   cost of no request that waits: two replicas with a half each of what both need do not wait for each other. So without
 *   losses, enough demand of cost 1 uses exactly the limit. A larger cost leaves less than itself.
 * - C1, a lowered limit holds: after `onLimitChanged` only permits are spent that the ledger has charged under the new limit.
 *
 * The pool is plain data. The functions that change it are below, and in these files:
 * - permit-spending.ts: a request takes permits, uses them up or gives them back.
 * - permit-asking.ts: which message to send to the ledger, and when.
 * - permit-settling.ts: what became of a message, and which of the waiting requests are denied.
 *
 * The owner serializes all calls. After each call, and again at `nextDueMs`, it calls `nextAsk` and sends the message.
 * The model checker (test/domain/permit-model) copies and compares pools field by field.
 */
export class PermitPool {
  /** The window that all permits here belong to. */
  gen = 0;
  /** Its permits may be spent until then. 0: no window. */
  spendableUntilMs = 0;
  /** Permits that can be spent. In an open window they are fewer than the smallest cost that is waited for. */
  held = 0;
  /** Permits taken by requests that are not finished yet: their use is neither charged nor refused. */
  inUse = 0;
  /** Permits that were used, not yet reported to the ledger. */
  spent = 0;
  /** Permits that were charged under a limit that has been replaced since. They are returned and never spent. */
  outdated = 0;
  /** How many of those in use are outdated at most: which of them is not known. */
  outdatedInUse = 0;
  /** The requests that wait for permits. */
  waiting = createCostQueue();

  /**
   * The window's end by the ledger's last answer. Until then its state is displayed and denials hold. It differs from
   * `spendableUntilMs` only if the ledger's clock was set back.
   */
  windowEndsMs = 0;
  /** Whether the ledger's clock was behind at its last answer. */
  isClockBehind = false;
  /** Whether few permits were left at the ledger's last answer: then nothing is fetched in advance. */
  isContended = false;
  /** Permits left in the ledger at its last answer. */
  leftInLedger = 0;
  /** The limit by the ledger's last answer. */
  limit = 0;
  /** The message whose answer had `limit`. */
  limitMessage = 0;
  /** The first message made since the limit was last changed. Answers to earlier ones may have the old limit. */
  limitValidFrom = 0;
  /** The window's end by the ledger's clock, as callers see it. */
  resetMs = 0;
  /** The smallest `remaining` that a caller saw in this window, not counting permits released since. */
  lowestRemaining = Number.POSITIVE_INFINITY;

  /** The number of the last message that was made. */
  lastMessageNumber = 0;
  /** The message that the pool waits for before it makes another. 0: none. */
  currentNumber = 0;
  /** A message under way that the pool does not wait for, because its answer is overdue. 0: none. */
  overdueNumber = 0;
  /** The last message that was under way together with another. */
  overlapNumber = 0;
  /** Whether the next message returns all permits. */
  isRecalled = false;
  /** No message is sent before this: the pause after a message that was lost or not executed. */
  backoffUntilMs = 0;
  /** No message is sent before this if all requests wait for more than is within reach: the pause between two attempts. */
  retryAtMs = 0;
  /** When surplus permits are returned and spent ones reported. */
  returnDueMs = 0;

  /** Since when the ledger's answers have not covered which of the waiting requests. */
  shortLevels: readonly ShortLevel[] = [];
  /** Until then requests for more than `deniedAbove` are denied from memory. Cheaper ones are still asked for. */
  deniedUntilMs = 0;
  deniedAbove = 0;

  /** The usual time from a message to its answer. */
  rttMs = 0;
  /** Requests, their costs, and the squares of their costs, which show how far a sum of costs varies. As of `rateAtMs`. */
  ratePerMs = 0;
  unitsPerMs = 0;
  squaresPerMs = 0;
  rateAtMs = 0;
  /** When the next window probably opens, so that the first message for it does not come too early. */
  nextWindowMs = 0;
}

/**
 * Since when requests for more than `above` could not be served. A cost that is out of reach puts all larger ones out of
 * reach. So a list of these begins with the largest costs, which have been out of reach for longest.
 */
export interface ShortLevel {
  readonly above: number;
  readonly sinceMs: number;
}

/** The pool's answer to one request. */
export type PermitTake =
  | { readonly outcome: "admitted"; readonly gen: number }
  /** So many permits are not to be had: the window's other permits are spent, or did not come back for too long. */
  | { readonly outcome: "denied" }
  /** The caller waits; a later verdict admits or denies it. */
  | { readonly outcome: "wait" };

/** Which waiting requests are admitted, and which of the others are denied. The rest keep waiting. */
export interface PermitVerdict {
  /** The window that the admitted requests were charged to. */
  readonly gen: number;
  readonly admitted: readonly Picked[];
  /** Picked from those that are left when the admitted ones are gone. */
  readonly denied: readonly Picked[];
  /** True: no permit could have served the denied ones. False: other replicas may still return permits they hold. */
  readonly isFinal: boolean;
  /** Some that keep waiting want more than is left in the ledger. */
  readonly short: Shortage | undefined;
}

/** Requests for more than `above` could not be served: what they see if they give up when this window is over. */
export interface Shortage {
  readonly gen: number;
  readonly above: number;
  readonly state: RateLimitState;
}

/** One exchange with the ledger. The number identifies it within the pool. */
export interface PermitMessage {
  readonly number: number;
  readonly sentAtMs: number;
  /** How many of the returned permits were outdated. */
  readonly outdated: number;
  readonly ask: PermitAsk;
}

/** Another window counts from now on: permits and denials of the one before are worthless. */
export function startWindow(pool: PermitPool, gen: number): void {
  pool.gen = gen;
  pool.spendableUntilMs = 0;
  pool.held = 0;
  pool.inUse = 0;
  pool.spent = 0;
  pool.outdated = 0;
  pool.outdatedInUse = 0;
  pool.windowEndsMs = 0;
  pool.nextWindowMs = 0;
  pool.isClockBehind = false;
  pool.isContended = false;
  pool.isRecalled = false;
  pool.deniedUntilMs = 0;
  pool.shortLevels = [];
  pool.lowestRemaining = Number.POSITIVE_INFINITY;
}

/** Another replica wants permits, or this one stops: the next message returns all of them, and waits for nothing but a backoff. */
export function recallPermits(pool: PermitPool): void {
  pool.isRecalled = true;
}

/**
 * The subject's limit was changed: denials under the old limit no longer hold, nor does the limit in answers to messages
 * that were made before. No permit from before is spent any more: the new limit may be lower than what has been charged.
 */
export function onLimitChanged(pool: PermitPool): void {
  pool.limitValidFrom = pool.lastMessageNumber + 1;
  pool.outdated += pool.held;
  pool.held = 0;
  pool.outdatedInUse = pool.inUse;
  pool.deniedUntilMs = 0;
  pool.shortLevels = [];
  pool.backoffUntilMs = 0;
  pool.retryAtMs = 0;
}

/** The subject was deleted: no request waits any more, and no permit, held or in a coming answer, may be spent. */
export function dropPermits(pool: PermitPool): void {
  startWindow(pool, pool.gen);
  pool.waiting = createCostQueue();
  pool.currentNumber = 0;
  pool.overdueNumber = 0;
}

/** Whether the window's permits may be spent. */
export function isOpen(pool: PermitPool, nowMs: number): boolean {
  return nowMs < pool.spendableUntilMs;
}

/**
 * What a caller sees of the window; one that is refused, less than it costs (`below`). Undefined if no window is open.
 * `remaining` never rises within a window, but by what the limit does and what requests give back. After a change the
 * limit is the caller's until the ledger reports it.
 */
export function displayState(
  pool: PermitPool,
  nowMs: number,
  callersLimit: number,
  below = Number.POSITIVE_INFINITY,
): RateLimitState | undefined {
  if (nowMs >= pool.windowEndsMs) return undefined;
  const limit = pool.limitMessage < pool.limitValidFrom ? callersLimit : pool.limit;
  const lowest = Math.min(pool.lowestRemaining, pool.leftInLedger + permitsHeld(pool));
  // A refused caller always sees less than it wanted, even if other replicas hold permits that they will return.
  const remaining = Math.max(0, Math.min(lowest + limit - pool.limit, below - 1));
  pool.lowestRemaining = Math.min(lowest, remaining - limit + pool.limit);
  return { limit, remaining, resetMs: pool.resetMs };
}

/** Whether it is this window that callers see. */
export function isDisplayed(pool: PermitPool, gen: number, nowMs: number): boolean {
  return gen === pool.gen && nowMs < pool.windowEndsMs;
}

/** The time left in the window, if the ledger's clock is known to be wrong: then `resetMs` cannot be used. */
export function remainingWindowMs(pool: PermitPool, nowMs: number): number | undefined {
  return pool.isClockBehind ? pool.windowEndsMs - nowMs : undefined;
}

/** Permits that are here, if their window is open. */
export function permitsHeld(pool: PermitPool): number {
  return pool.held + pool.outdated;
}

/** Whether a new pool can replace it: no waiting request, no unanswered message, its window long over. */
export function isIdle(pool: PermitPool, nowMs: number): boolean {
  const isUsed = pool.waiting.length > 0 || pool.currentNumber !== 0 || pool.overdueNumber !== 0 || isOpen(pool, nowMs);
  return !isUsed && nowMs >= pool.windowEndsMs + tuning.keptAfterWindowMs;
}

export function verdictOf({ gen }: PermitPool, admitted = none, denied = none, isFinal = false): PermitVerdict {
  return { gen, admitted, denied, isFinal, short: undefined };
}

const none: readonly Picked[] = [];
