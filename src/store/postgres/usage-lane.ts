import {
  type Charge,
  type ChargeResult,
  refilledAhead,
  type SettledCharge,
  type UsageEngine,
} from "../usage-ledger.ts";
import { GuardedLane, type GuardedLaneOptions, type LaneWork } from "./guarded-lane.ts";
import { settleSteps } from "./settle-statement.ts";

/** A lane of the usage ledger. */
export class UsageLane extends GuardedLane<Charge, UsageRow, SettledCharge> implements UsageEngine {
  constructor(options: GuardedLaneOptions) {
    super(options, settling);
  }

  settle(charges: readonly Charge[]): Promise<readonly ChargeResult[]> {
    return this.apply(charges);
  }
}

type UsageRow = readonly [subject: string, granted: number, remaining: number, refilledAheadMs: number];

const settling: LaneWork<Charge, UsageRow, SettledCharge> = {
  steps: settleSteps,
  valuesOf: (charges) => [charges.map(({ subject }) => subject), charges.map(({ wanted }) => wanted)],
  settledOf: ([, granted, remaining, aheadMs]) => ({
    outcome: "settled",
    granted,
    remaining,
    ...refilledAhead(aheadMs),
  }),
};
