import { type CostRun, grantRuns } from "../../domain/cost-runs.ts";
import { askRunsMax, type PermitAsk } from "../../domain/permit-window.ts";

/**
 * The asks with so many runs together that they can be merged: each keeps its first ones. What is cut off here is asked
 * for again by its replica.
 */
export function boundRuns(asks: readonly PermitAsk[]): readonly PermitAsk[] {
  const runs = asks.map(({ waiting }) => waiting.length);
  if (runs.reduce((sum, count) => sum + count, 0) <= askRunsMax) return asks;
  const kept = shareEvenly(askRunsMax, runs);
  return asks.map((ask, i) => ({ ...ask, waiting: ask.waiting.slice(0, kept[i]) }));
}

/**
 * Many replicas' asks for one subject as one. Returns and reports of the newest window count; those of older ones are for a
 * window that is over, and are dropped as the ledger would drop them.
 */
export function mergeAsks(asks: readonly PermitAsk[], holders: number): PermitAsk {
  const gen = Math.max(...asks.map((ask) => ask.gen));
  // All have the same rule, or none.
  const sentRule = asks[0]?.sentRule;
  const merged = { waiting: mergeRuns(asks), inAdvance: 0, gen, returned: 0, spent: 0, holders, sentRule };
  for (const ask of asks) {
    merged.inAdvance += ask.inAdvance;
    if (ask.gen !== gen) continue;
    merged.returned += ask.returned;
    merged.spent += ask.spent;
  }
  return merged;
}

/** Equal neighbours become one run: then the ask costs the same, however many callers wait. */
function mergeRuns(asks: readonly PermitAsk[]): CostRun[] {
  const merged: { cost: number; count: number }[] = [];
  for (const { cost, count } of asks.flatMap(({ waiting }) => waiting)) {
    const last = merged.at(-1);
    if (last?.cost === cost) last.count += count;
    else merged.push({ cost, count });
  }
  return merged;
}

/** What one ask gets. */
export interface Share {
  readonly granted: number;
  /** The smallest of its costs that was not granted. Undefined: all were. */
  readonly lacking: number | undefined;
}

/**
 * Splits the granted permits. First to requests that wait, in order: whole costs only, as the ledger has counted them. The
 * rest evenly, up to what each wants in advance.
 */
export function shareOut(asks: readonly PermitAsk[], granted: number): Share[] {
  const runs = asks.flatMap(({ waiting }) => waiting);
  const grants = grantRuns(granted, runs).values();
  const waited = asks.map(({ waiting }) => shareOf(waiting, grants));
  const rest = waited.reduce((left, share) => left - share.granted, granted);
  const wanted = asks.map((ask) => ask.inAdvance);
  const inAdvance = shareEvenly(rest, wanted);
  return waited.map((share, i) => ({ ...share, granted: share.granted + (inAdvance[i] as number) }));
}

function shareOf(waiting: readonly CostRun[], grants: Iterator<number, unknown>): Share {
  let granted = 0;
  let lacking: number | undefined;
  for (const { cost, count } of waiting) {
    const served = grants.next().value as number;
    granted += served * cost;
    if (served < count) lacking = Math.min(cost, lacking ?? cost);
  }
  return { granted, lacking };
}

/** Gives each the same, up to what it wants. */
function shareEvenly(amount: number, wants: readonly number[]): number[] {
  const shares = wants.map(() => 0);
  let left = amount;
  // What one does not want goes to the others; so it ends, at the latest, when one after the other has enough.
  for (let unserved = wants.length; left > 0 && unserved > 0; ) {
    const each = Math.max(1, Math.floor(left / unserved));
    unserved = 0;
    wants.forEach((want, i) => {
      const share = shares[i] as number;
      const more = Math.min(left, each, want - share);
      shares[i] = share + more;
      left -= more;
      if (want > share + more) unserved++;
    });
  }
  return shares;
}
