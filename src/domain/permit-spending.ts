import { enqueue, type Picked, takeFitting, unitsOf } from "./cost-queue.ts";
import { noteRequest } from "./permit-demand.ts";
import { isOpen, type PermitPool, type PermitTake, type PermitVerdict, verdictOf } from "./permit-pool.ts";

/** Asks for as many permits as the request costs, or none. Check and spend happen in one synchronous call. */
export function takePermits(pool: PermitPool, nowMs: number, cost = 1): PermitTake {
  // Requests that wait want more than is held, so a cheaper one takes nothing from them.
  if (cost <= pool.held && isOpen(pool, nowMs)) {
    noteRequest(pool, nowMs, cost);
    pool.held -= cost;
    pool.inUse += cost;
    return { outcome: "admitted", gen: pool.gen };
  }
  if (nowMs < pool.deniedUntilMs && cost > pool.deniedAbove) {
    // Its cost needs no block: it would be refused again.
    noteRequest(pool, nowMs, 1);
    return denied;
  }
  noteRequest(pool, nowMs, cost);
  enqueue(pool.waiting, cost);
  return wait;
}

const denied = { outcome: "denied" } as const;
const wait = { outcome: "wait" } as const;

/** The permits of one request were used: only now they count as spent. */
export function commitPermits(pool: PermitPool, gen: number, cost = 1): void {
  pool.spent += endUse(pool, gen, cost);
}

/** The permits of a request were not used. In their own window they serve others; in a later window they are worthless. */
export function releasePermits(pool: PermitPool, gen: number, nowMs: number, cost = 1): PermitVerdict {
  const { outdatedInUse } = pool;
  const unused = endUse(pool, gen, cost);
  // The lowest `remaining` was seen without them.
  if (gen === pool.gen) pool.lowestRemaining += cost;
  if (!isOpen(pool, nowMs)) return verdictOf(pool);
  const outdated = Math.min(unused, outdatedInUse);
  pool.outdated += outdated;
  pool.held += unused - outdated;
  return verdictOf(pool, admitWaiting(pool));
}

/** Spends what is held on the waiting requests that it suffices for. */
export function admitWaiting(pool: PermitPool): readonly Picked[] {
  const admitted = takeFitting(pool.waiting, pool.held);
  const units = unitsOf(admitted);
  pool.held -= units;
  pool.inUse += units;
  return admitted;
}

/** How many permits of the current window are no longer in use by that. */
function endUse(pool: PermitPool, gen: number, cost: number): number {
  if (gen !== pool.gen) return 0;
  const ended = Math.min(cost, pool.inUse);
  pool.inUse -= ended;
  pool.outdatedInUse = Math.min(pool.outdatedInUse, pool.inUse);
  return ended;
}
