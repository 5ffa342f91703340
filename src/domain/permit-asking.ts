import { firstRuns, smallestCost } from "./cost-queue.ts";
import { coveredMs, demandPerMs, idleAfterMs, isTooLate, neededUntilAnswer } from "./permit-demand.ts";
import { isOpen, type PermitMessage, type PermitPool } from "./permit-pool.ts";
import * as tuning from "./permit-pool-tuning.ts";
import { reachOf } from "./permit-settling.ts";
import { askRunsMax } from "./permit-window.ts";
import { limitMax } from "./rate-limit.ts";

/** When the next message is due if nothing else happens. Undefined: none is, or an answer is waited for. */
export function nextDueMs(pool: PermitPool, nowMs: number): number | undefined {
  if (pool.currentNumber !== 0) return undefined;
  if (pool.waiting.length > 0) {
    const retryAtMs = smallestCost(pool.waiting) > reachOf(pool) ? pool.retryAtMs : 0;
    return Math.max(nowMs, pool.backoffUntilMs, retryAtMs, isTooLate(pool, nowMs) ? pool.nextWindowMs : 0);
  }
  if (!isOpen(pool, nowMs)) return undefined;
  const dueMs = Math.max(nowMs, pool.backoffUntilMs, isLow(pool, nowMs) ? 0 : nextReturnMs(pool));
  return dueMs < pool.spendableUntilMs ? dueMs : undefined;
}

/**
 * The message to send now, if any. Send it exactly once, then call `settleGrant`, `settleLost` or `settleNotExecuted`
 * with it.
 */
export function nextAsk(pool: PermitPool, nowMs: number): PermitMessage | undefined {
  const dueMs = nextDueMs(pool, nowMs);
  if (dueMs === undefined || dueMs > nowMs) return undefined;
  const waiting = firstRuns(pool.waiting, askRunsMax, reachOf(pool));
  const fetching = waiting.length > 0 || isLow(pool, nowMs);
  const perMs = isYielding(pool, nowMs) ? 0 : demandPerMs(pool, nowMs);
  const needed = Math.min(limitMax, perMs * coveredMs(pool));
  // Returned permits leave the pool before their message exists.
  const { gen, outdated, spent } = pool;
  const surplus = surplusOf(pool, needed, fetching, nowMs);
  pool.held -= surplus;
  pool.outdated = 0;
  pool.spent = 0;
  pool.isRecalled = false;
  const inAdvance = fetching ? Math.max(0, Math.round(needed) - pool.held) : 0;
  const number = ++pool.lastMessageNumber;
  pool.currentNumber = number;
  if (pool.overdueNumber !== 0) pool.overlapNumber = number;
  const ask = { waiting, inAdvance, gen, returned: outdated + surplus, spent, holders: 1 };
  return { number, sentAtMs: nowMs, outdated, ask };
}

/** Whether other replicas lack permits, or requests here have stopped: then only waiting requests get permits here. */
function isYielding(pool: PermitPool, nowMs: number): boolean {
  if (!isOpen(pool, nowMs)) return false;
  return pool.isContended || pool.isRecalled || nowMs >= pool.rateAtMs + idleAfterMs(pool);
}

/**
 * How many of the held permits the next message returns. While requests wait, all: they complete the cost of none of
 * them, and may be just what another replica lacks. Otherwise those that demand does not need.
 */
function surplusOf(pool: PermitPool, needed: number, fetching: boolean, nowMs: number): number {
  // While the ledger's clock is behind, nothing can be spent, but it still counts in the ledger.
  if (pool.waiting.length > 0) return isOpen(pool, nowMs) || nowMs < pool.windowEndsMs ? pool.held : 0;
  return fetching || !isOpen(pool, nowMs) ? 0 : Math.max(0, pool.held - Math.floor(needed));
}

/** Whether to fetch a block now, before requests have to wait for it. */
function isLow(pool: PermitPool, nowMs: number): boolean {
  if (isYielding(pool, nowMs) || pool.leftInLedger === 0 || isTooLate(pool, nowMs)) return false;
  return pool.held + 1 <= neededUntilAnswer(pool, nowMs);
}

/** When permits are returned. Outdated or recalled: now. Contended: at `returnDueMs`. Else when decaying demand needs half of them. */
function nextReturnMs(pool: PermitPool): number {
  if (pool.outdated > 0) return 0;
  const yielding = pool.isContended || pool.isRecalled;
  if (pool.held === 0 && !(yielding && pool.spent > 0)) return Number.POSITIVE_INFINITY;
  if (yielding) return pool.isRecalled ? 0 : pool.returnDueMs;
  const needed = pool.unitsPerMs * coveredMs(pool);
  const surplusMs = tuning.demandMemoryMs * Math.log((2 * needed) / pool.held);
  return Math.max(pool.returnDueMs, pool.rateAtMs + Math.min(surplusMs, idleAfterMs(pool)));
}
