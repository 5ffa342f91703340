import { type Picked, smallestAbove, takeAbove } from "./cost-queue.ts";
import { noteRoundTrip, noteWindowEnd, shortMaxMs } from "./permit-demand.ts";
import {
  isOpen,
  type PermitMessage,
  type PermitPool,
  type PermitVerdict,
  permitsHeld,
  type ShortLevel,
  startWindow,
  verdictOf,
} from "./permit-pool.ts";
import * as tuning from "./permit-pool-tuning.ts";
import { admitWaiting } from "./permit-spending.ts";
import type { PermitGrant } from "./permit-window.ts";

/** The ledger's answer. An answer to a message that is not under way, such as a second copy, changes nothing. */
export function settleGrant(
  pool: PermitPool,
  message: PermitMessage,
  grant: PermitGrant,
  nowMs: number,
): PermitVerdict {
  // The delay of an overdue answer says nothing about the next message, which takes another way.
  if (message.number === pool.currentNumber) noteRoundTrip(pool, nowMs - message.sentAtMs);
  if (!endMessage(pool, message)) return verdictOf(pool);
  pool.returnDueMs = nowMs + tuning.holdMs;

  const spendableUntilMs = earliestEndMs(message, grant);
  const hasOldLimit = mayHaveOldLimit(pool, message);
  // No request opens a window whose cost is above the limit. The limit may be lower than the one that its caller knows.
  if (grant.endsInMs === 0) return verdictOf(pool, [], hasOldLimit ? [] : takeAbove(pool.waiting, grant.limit), true);
  if (nowMs >= spendableUntilMs) return verdictOf(pool);
  const isLast = message.number === pool.lastMessageNumber;
  // The answer to a later message may be from a later window, whose permits must not be dropped for these.
  if (!isLast && grant.gen < pool.gen) return verdictOf(pool);
  const isLatest = isLast || grant.gen !== pool.gen;
  if (grant.gen !== pool.gen) startWindow(pool, grant.gen);
  // Each answer proves that the window lasts at least until some time, so the latest of these times counts. A clock
  // that is behind proves nothing.
  if (!grant.clockBehind) pool.spendableUntilMs = Math.max(pool.spendableUntilMs, spendableUntilMs);
  // Under the old limit too much may have been granted.
  if (hasOldLimit) pool.outdated += grant.granted;
  else pool.held += grant.granted;
  if (isLatest) storeWindow(pool, message, grant, spendableUntilMs);
  else if (!pool.isClockBehind) pool.windowEndsMs = pool.spendableUntilMs;
  const others = heldByOthers(pool, message, grant);
  const admitted = admitWaiting(pool);
  noteReach(pool);
  // By a limit that has been replaced since nothing is refused: those who wait are asked for again.
  const short = hasOldLimit ? undefined : smallestAbove(pool.waiting, reachOf(pool));
  return short === undefined ? verdictOf(pool, admitted) : settleShortage(pool, admitted, short, others, nowMs);
}

/** The outcome of the message is unknown. Its permits are never sent again; waiting requests cause a new message. */
export function settleLost(pool: PermitPool, message: PermitMessage, nowMs: number): void {
  if (endMessage(pool, message)) pauseAttempts(pool, nowMs);
}

/**
 * The message was not executed and never will be: it was not sent, or it was refused. What it returned and reported is
 * still here. Never call this for a message that may have been executed: its permits would exist twice.
 */
export function settleNotExecuted(pool: PermitPool, message: PermitMessage, nowMs: number): PermitVerdict {
  if (!endMessage(pool, message)) return verdictOf(pool);
  pauseAttempts(pool, nowMs);
  const { gen, returned, spent } = message.ask;
  if (gen !== pool.gen || !isOpen(pool, nowMs)) return verdictOf(pool);
  const outdated = mayHaveOldLimit(pool, message) ? returned : message.outdated;
  pool.outdated += outdated;
  pool.held += returned - outdated;
  pool.spent += spent;
  return verdictOf(pool, admitWaiting(pool));
}

/** The answer is late. Another message may be sent another way; an answer to this one is still taken. */
export function markOverdue(pool: PermitPool, message: PermitMessage): void {
  if (message.number !== pool.currentNumber || pool.overdueNumber !== 0) return;
  pool.overdueNumber = pool.currentNumber;
  pool.currentNumber = 0;
}

/** Answers whether the message was under way. */
function endMessage(pool: PermitPool, { number }: PermitMessage): boolean {
  const isUnderWay = number === pool.currentNumber || number === pool.overdueNumber;
  if (number === pool.currentNumber) pool.currentNumber = 0;
  if (number === pool.overdueNumber) pool.overdueNumber = 0;
  return isUnderWay;
}

function pauseAttempts(pool: PermitPool, nowMs: number): void {
  pool.backoffUntilMs = nowMs + tuning.holdMs;
  pool.returnDueMs = nowMs + tuning.holdMs;
}

/** Whether the ledger may have executed this message under a limit that has been replaced since. */
function mayHaveOldLimit(pool: PermitPool, { number }: PermitMessage): boolean {
  return number < pool.limitValidFrom;
}

/** Counted from before the ledger read its clock. A little early: for a slow clock here, and for the ledger's tick. */
function earliestEndMs({ sentAtMs }: PermitMessage, { endsInMs, durationMs }: PermitGrant): number {
  return sentAtMs + (Math.min(endsInMs, durationMs) - tuning.ledgerTickMs) * tuning.clockSpeedMargin;
}

/** Keeps what the ledger reports about the window, unless a later message was made: then its answer counts. */
function storeWindow(pool: PermitPool, message: PermitMessage, grant: PermitGrant, spendableUntilMs: number): void {
  pool.windowEndsMs = grant.clockBehind ? spendableUntilMs : pool.spendableUntilMs;
  pool.isClockBehind = grant.clockBehind;
  noteWindowEnd(pool, message.sentAtMs + grant.endsInMs, grant.clockBehind);
  pool.isContended = grant.contended;
  pool.leftInLedger = grant.left;
  pool.lowestRemaining = Math.max(0, pool.lowestRemaining + grant.limit - pool.limit);
  pool.limit = grant.limit;
  pool.limitMessage = message.number;
  pool.resetMs = grant.endsAtMs;
}

/**
 * Permits that other replicas hold, because this one has returned, reported and got nothing else since it sent the
 * message. If another message was under way meanwhile, or was made later, its part is not known: then others may hold some.
 */
function heldByOthers(pool: PermitPool, { number }: PermitMessage, { outstanding }: PermitGrant): number {
  const wasAlone = number > pool.overlapNumber && number === pool.lastMessageNumber;
  return wasAlone ? outstanding - permitsHeld(pool) - pool.inUse - pool.spent : 1;
}

/* Which of the requests that wait for permits are denied, and for how long that is remembered. */

/** More would only make a cost wait a little longer that came out of reach after so many others. */
const levelsMax = 32;

/** The largest cost that the next answer could cover, as far as is known: it returns what is held, if requests wait. */
export function reachOf(pool: PermitPool): number {
  return pool.leftInLedger + pool.held;
}

/** Costs that are within reach (again) are not out of it any longer. */
function noteReach(pool: PermitPool): void {
  const reach = reachOf(pool);
  pool.deniedAbove = Math.max(pool.deniedAbove, reach);
  pool.shortLevels =
    pool.waiting.length === 0
      ? pool.shortLevels.filter(({ above }) => above > reach)
      : levelsAbove(pool.shortLevels, reach);
}

/** Another way showed how many permits are left in the ledger: costs up to that are asked for again. */
export function noteLeft(pool: PermitPool, { gen, left }: Pick<PermitGrant, "gen" | "left">): void {
  if (gen === pool.gen) pool.deniedAbove = Math.max(pool.deniedAbove, left);
}

/**
 * Requests wait for more than is within reach, the cheapest of them for `cost`. They are denied if it cannot come back,
 * or has not for too long.
 */
function settleShortage(
  pool: PermitPool,
  admitted: readonly Picked[],
  cost: number,
  heldByOthers: number,
  nowMs: number,
): PermitVerdict {
  const reach = reachOf(pool);
  addLevel(pool, reach, cost, nowMs);
  const isFinal = heldByOthers <= 0 && pool.inUse === 0 && pool.outdated === 0;
  const maxMs = shortMaxMs(pool);
  const overdue = pool.shortLevels.findLast(({ sinceMs }) => nowMs - sinceMs >= maxMs);
  if (isFinal) {
    const untilMs = pool.isClockBehind ? nowMs + tuning.clockBehindDenialMs : pool.windowEndsMs;
    rememberDenial(pool, reach, untilMs, nowMs);
  } else if (overdue !== undefined) rememberOverdue(pool, overdue, nowMs);
  // What is above the limit cannot come back.
  const above = isFinal ? reach : Math.min(overdue?.above ?? pool.limit, pool.limit);
  const denied = takeAbove(pool.waiting, above);
  const verdict = verdictOf(pool, admitted, denied, isFinal || (overdue === undefined && denied.length > 0));
  if (smallestAbove(pool.waiting, reach) === undefined) return verdict;
  const shortMs = nowMs - (pool.shortLevels.at(-1) as ShortLevel).sinceMs;
  pool.retryAtMs = nowMs + Math.min(tuning.retryMaxMs, Math.max(tuning.retryMinMs, shortMs / 2));
  const { gen, limit, resetMs } = pool;
  const remaining = Math.min(pool.lowestRemaining, reach);
  return { ...verdict, short: { gen, above: reach, state: { limit, remaining, resetMs } } };
}

/** Permits lost by a crash never come back. So the pauses grow, but some attempts remain before the window's end. */
function rememberOverdue(pool: PermitPool, { above, sinceMs }: ShortLevel, nowMs: number): void {
  const partMs = (pool.windowEndsMs - nowMs) / tuning.retriesMin;
  rememberDenial(pool, above, nowMs + Math.max(tuning.holdMs, Math.min(nowMs - sinceMs, partMs)), nowMs);
}

/** A denial that is covered by one that still holds is not remembered. */
function rememberDenial(pool: PermitPool, above: number, untilMs: number, nowMs: number): void {
  const endsMs = Math.min(pool.windowEndsMs, untilMs);
  if (nowMs < pool.deniedUntilMs && pool.deniedAbove <= above && pool.deniedUntilMs >= endsMs) return;
  pool.deniedUntilMs = endsMs;
  pool.deniedAbove = above;
}

/** The levels when costs up to `reach` can be served. Those above it are out of reach for as long as before. */
function levelsAbove(levels: readonly ShortLevel[], reach: number): readonly ShortLevel[] {
  const at = levels.findIndex(({ above }) => above < reach);
  if (at < 0) return levels;
  const kept = levels.slice(0, at);
  return kept.at(-1)?.above === reach ? kept : [...kept, { ...(levels[at] as ShortLevel), above: reach }];
}

/** A request for `cost` waits, which is more than `reach`. */
function addLevel(pool: PermitPool, reach: number, cost: number, nowMs: number): void {
  const last = pool.shortLevels.at(-1);
  if (last !== undefined && cost > last.above) return;
  pool.shortLevels = [...pool.shortLevels.slice(0, levelsMax - 1), { above: reach, sinceMs: nowMs }];
}
