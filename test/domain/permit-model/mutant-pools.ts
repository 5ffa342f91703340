import { takeAbove, unitsOf } from "../../../src/domain/cost-queue.ts";
import type { PermitPool, PermitVerdict } from "../../../src/domain/permit-pool.ts";
import { type PermitPoolFunctions, poolFunctions as product } from "./pool-functions.ts";

/* The replica's side with one thing wrong: each has functions in the place of some of the product's. */

type PoolMutant = Partial<PermitPoolFunctions>;

export const spendsOne: PoolMutant = {
  takePermits(pool, nowMs, cost = 1) {
    const take = product.takePermits(pool, nowMs, cost);
    if (take.outcome === "admitted") pool.held += cost - 1;
    return take;
  },
  settleGrant: (pool, ...answer) => spendingOne(pool, product.settleGrant(pool, ...answer)),
  releasePermits: (pool, ...use) => spendingOne(pool, product.releasePermits(pool, ...use)),
};

function spendingOne(pool: PermitPool, verdict: PermitVerdict): PermitVerdict {
  pool.held += Math.max(0, unitsOf(verdict.admitted) - 1);
  return verdict;
}

export const releasesOne: PoolMutant = {
  releasePermits: (pool, gen, nowMs) => product.releasePermits(pool, gen, nowMs, 1),
};

export const hoards: PoolMutant = {
  nextAsk(pool, nowMs) {
    const message = product.nextAsk(pool, nowMs);
    if (message === undefined || message.ask.waiting.length === 0) return message;
    const { ask, outdated } = message;
    const kept = ask.returned - outdated;
    pool.held += kept;
    return { ...message, ask: { ...ask, returned: outdated, inAdvance: Math.max(0, ask.inAdvance - kept) } };
  },
};

export const deniesSmaller: PoolMutant = {
  settleGrant(pool, ...answer) {
    const verdict = product.settleGrant(pool, ...answer);
    pool.deniedAbove = 0;
    return verdict;
  },
};

export const trustsClock: PoolMutant = {
  settleGrant: (pool, message, grant, nowMs) =>
    product.settleGrant(pool, message, { ...grant, clockBehind: false }, nowMs),
};

export const zeroAfterSend: PoolMutant = {
  nextAsk(pool, nowMs) {
    const message = product.nextAsk(pool, nowMs);
    pool.held += message?.ask.returned ?? 0;
    return message;
  },
  settleGrant(pool, message, grant, nowMs) {
    pool.held = Math.max(0, pool.held - message.ask.returned);
    return product.settleGrant(pool, message, grant, nowMs);
  },
};

export const creditsLost: PoolMutant = {
  settleLost(pool, message, nowMs) {
    if (message.ask.gen === pool.gen) pool.held += message.ask.returned;
    product.settleLost(pool, message, nowMs);
  },
};

export const countsCopies: PoolMutant = {
  settleGrant(pool, message, grant, nowMs) {
    if (message.number !== pool.currentNumber) pool.overdueNumber = message.number;
    return product.settleGrant(pool, message, grant, nowMs);
  },
};

export const countsRefusalTwice: PoolMutant = {
  settleNotExecuted(pool, message, nowMs) {
    pool.overdueNumber = message.number;
    return product.settleNotExecuted(pool, message, nowMs);
  },
};

export const creditsAnyWindow: PoolMutant = {
  settleNotExecuted: (pool, message, nowMs) =>
    product.settleNotExecuted(pool, { ...message, ask: { ...message.ask, gen: pool.gen } }, nowMs),
};

export const takesBackOverdue: PoolMutant = {
  markOverdue(pool, message) {
    if (message.ask.gen === pool.gen) pool.held += message.ask.returned;
    product.markOverdue(pool, message);
  },
};

/** Its pools remember one thing more. */
interface RepeatingPool extends PermitPool {
  overdueReturn: number;
}

export const repeatsOverdue: PoolMutant = {
  createPermitPool: (): RepeatingPool => ({ ...product.createPermitPool(), overdueReturn: 0 }),
  markOverdue(pool, message) {
    (pool as RepeatingPool).overdueReturn = message.ask.returned;
    product.markOverdue(pool, message);
  },
  nextAsk(pool, nowMs) {
    const message = product.nextAsk(pool, nowMs);
    const { overdueReturn } = pool as RepeatingPool;
    if (message === undefined || overdueReturn === 0) return message;
    (pool as RepeatingPool).overdueReturn = 0;
    return { ...message, ask: { ...message.ask, returned: message.ask.returned + overdueReturn } };
  },
};

export const creditsLaterWindow: PoolMutant = {
  settleGrant(pool, message, grant, nowMs) {
    const isOlder = message.number !== pool.lastMessageNumber && grant.gen < pool.gen;
    const credited = isOlder ? { ...grant, gen: pool.gen, endsInMs: 1000, durationMs: 1000 } : grant;
    return product.settleGrant(pool, message, credited, nowMs);
  },
};

export const trustsOverlap: PoolMutant = {
  settleGrant(pool, message, grant, nowMs) {
    const verdict = product.settleGrant(pool, message, grant, nowMs);
    // It subtracts its own permits of now from what was outstanding when the ledger answered.
    const heldByOthers = grant.outstanding - pool.held - pool.inUse - pool.spent;
    if (verdict.short === undefined || heldByOthers > 0 || pool.inUse > 0) return verdict;
    pool.deniedUntilMs = pool.windowEndsMs;
    pool.deniedAbove = verdict.short.above;
    return { ...verdict, denied: takeAbove(pool.waiting, verdict.short.above), isFinal: true, short: undefined };
  },
};

export const dropsOverdue: PoolMutant = {
  markOverdue(pool, message) {
    if (message.number === pool.currentNumber) pool.currentNumber = 0;
  },
};

export const losesDeclined: PoolMutant = {
  settleNotExecuted(pool, message, nowMs) {
    product.settleLost(pool, message, nowMs);
    return { gen: pool.gen, admitted: [], denied: [], isFinal: false, short: undefined };
  },
};

export const givesBackAnywhere: PoolMutant = {
  releasePermits(pool, gen, nowMs, cost = 1) {
    // A permit of an earlier window is taken for one of this.
    if (gen !== pool.gen) pool.inUse += cost;
    return product.releasePermits(pool, pool.gen, nowMs, cost);
  },
};

export const endsFromReceipt: PoolMutant = {
  settleGrant: (pool, message, grant, nowMs) =>
    product.settleGrant(pool, { ...message, sentAtMs: nowMs }, grant, nowMs),
};

export const keepsForEver: PoolMutant = {
  takePermits(pool, nowMs, cost) {
    const { spendableUntilMs } = pool;
    if (pool.gen > 0) pool.spendableUntilMs = Number.POSITIVE_INFINITY;
    const take = product.takePermits(pool, nowMs, cost);
    pool.spendableUntilMs = spendableUntilMs;
    return take;
  },
};

export const acceptsLate: PoolMutant = {
  settleGrant(pool, message, grant, nowMs) {
    const lateMs = nowMs - message.sentAtMs + 2;
    const isLate = grant.endsInMs > 0 && grant.endsInMs <= lateMs;
    const extended = isLate ? { ...grant, endsInMs: lateMs + 1, durationMs: lateMs + 1 } : grant;
    return product.settleGrant(pool, message, extended, nowMs);
  },
};

export const deniesTooSoon: PoolMutant = {
  settleGrant: (pool, message, grant, nowMs) => product.settleGrant(pool, message, { ...grant, outstanding: 0 }, nowMs),
};

export const neverTidies: PoolMutant = {
  settleGrant(pool, ...answer) {
    const verdict = product.settleGrant(pool, ...answer);
    pool.returnDueMs = Number.POSITIVE_INFINITY;
    return verdict;
  },
  recallPermits() {},
};

export const reportsEarly: PoolMutant = {
  nextAsk(pool, nowMs) {
    product.commitPermits(pool, pool.gen, pool.inUse);
    return product.nextAsk(pool, nowMs);
  },
};

export const keepsOutdated: PoolMutant = {
  onLimitChanged(pool) {
    const { held, outdated, outdatedInUse } = pool;
    product.onLimitChanged(pool);
    Object.assign(pool, { held, outdated, outdatedInUse });
  },
};

export const trustsOldAnswer: PoolMutant = {
  settleGrant(pool, ...answer) {
    const { limitValidFrom } = pool;
    pool.limitValidFrom = 0;
    const verdict = product.settleGrant(pool, ...answer);
    pool.limitValidFrom = limitValidFrom;
    return verdict;
  },
};

export const reusesOutdated: PoolMutant = {
  onLimitChanged(pool) {
    product.onLimitChanged(pool);
    pool.outdatedInUse = 0;
  },
};

export const restoresOutdated: PoolMutant = {
  settleNotExecuted(pool, message, nowMs) {
    const { limitValidFrom } = pool;
    pool.limitValidFrom = 0;
    const verdict = product.settleNotExecuted(pool, { ...message, outdated: 0 }, nowMs);
    pool.limitValidFrom = limitValidFrom;
    return verdict;
  },
};

export const dropsOutdated: PoolMutant = {
  onLimitChanged(pool) {
    const { outdatedInUse } = pool;
    pool.held = 0;
    product.onLimitChanged(pool);
    pool.outdatedInUse = outdatedInUse;
  },
};
