import { fitting } from "../../domain/cost-runs.ts";
import { remainingMax } from "../../domain/usage.ts";
import {
  type Charge,
  type ChargeResult,
  refilledAhead,
  type SettledCharge,
  sharedBalance,
  type UsageEngine,
} from "../usage-ledger.ts";
import { GuardedLane } from "./guarded-lane.ts";
import { type LaneResult, type LaneStatement, locked, resultPerRow } from "./guarded-statement.ts";
import { partsOf } from "./parts.ts";
import { settleRunsSteps, settleSteps } from "./settle-statement.ts";

/** A lane of the usage ledger. */
export class UsageLane extends GuardedLane<Charge, UsageRow, SettledCharge> implements UsageEngine {
  settle(charges: readonly Charge[]): Promise<readonly ChargeResult[]> {
    return this.apply(charges, areSingleUses(charges) ? settlingUses : settlingRuns);
  }
}

/** The third is the balance after the batch. The second: see the statements. */
export type UsageRow = readonly [subject: string, granted: number, remaining: number, refilledAheadMs: number];

/** Whether every charge is of cost 1 and has a counter to itself: then the charges need not be counted in order. */
function areSingleUses(charges: readonly Charge[]): boolean {
  for (const { cost, shared } of charges) if (cost !== 1 || shared !== undefined) return false;
  return charges.length < 2 || new Set(charges.map(({ subject }) => subject)).size === charges.length;
}

const settlingUses: LaneStatement<Charge, UsageRow, SettledCharge> = {
  steps: settleSteps,
  valuesOf: (charges) => [
    charges.map(({ subject }) => subject),
    charges.map(({ count }) => Math.min(count, remainingMax)),
  ],
  resultsOf: resultPerRow(([, granted, remaining, aheadMs]) => ({
    outcome: "settled",
    granted,
    remaining,
    ...refilledAhead(aheadMs),
  })),
};

export const settlingRuns: LaneStatement<Charge, UsageRow, SettledCharge> = {
  steps: settleRunsSteps,
  valuesOf(charges) {
    const { subjects, parts, slots, positions } = partsOf(charges);
    const positionOf = (subject: string) => (positions.get(subject) as number) + 1;
    return [
      subjects,
      parts,
      slots,
      charges.map(({ subject }) => positionOf(subject)),
      charges.map(({ shared }) => (shared === undefined ? 0 : positionOf(shared))),
      charges.map(({ cost }) => cost),
      charges.map(({ cost, count }) => Math.min(count, countMax(cost))),
    ];
  },
  /** Counts again from the balances before the batch, as the database did: its rows are per counter, not per charge. */
  resultsOf(charges, rows) {
    const balances = new Map<string, number>();
    for (const [subject, row] of rows) if (row !== "locked") balances.set(subject, row[1]);
    const results = charges.map((charge): LaneResult<SettledCharge> => {
      const { subject, shared, cost } = charge;
      const own = rows.get(subject);
      const other = shared === undefined ? undefined : rows.get(shared);
      if (own === undefined || (shared !== undefined && other === undefined)) return { outcome: "missing" };
      if (own === "locked" || other === "locked") return locked;
      const take = (from: string, granted: number) => {
        const left = (balances.get(from) as number) - granted * cost;
        balances.set(from, left);
        return left;
      };
      const granted = Math.min(
        fitting(balances.get(subject) as number, charge),
        shared === undefined ? charge.count : fitting(balances.get(shared) as number, charge),
      );
      return {
        outcome: "settled",
        granted,
        remaining: take(subject, granted),
        ...sharedBalance(shared === undefined ? undefined : take(shared, granted)),
        ...refilledAhead(Math.max(own[3], other?.[3] ?? 0)),
      };
    });
    for (const [subject, row] of rows) if (row !== "locked" && balances.get(subject) !== row[2]) return "mismatch";
    return results;
  },
};

/** Above what any balance can pay for, and so low that sums of cost times count stay exact. */
function countMax(cost: number): number {
  return Math.floor(remainingMax / cost) + 1;
}
