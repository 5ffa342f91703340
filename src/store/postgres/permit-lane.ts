import type { PermitEngine, PermitResult, SubjectAsk } from "../permit-ledger.ts";
import { exchangeSteps } from "./exchange-statement.ts";
import { GuardedLane, type GuardedLaneOptions } from "./guarded-lane.ts";
import { type LaneStatement, resultPerRow } from "./lane-statement.ts";

/** A lane of the permit ledger. */
export class PermitLane extends GuardedLane<SubjectAsk, PermitRow, SettledAsk> implements PermitEngine {
  constructor(options: GuardedLaneOptions) {
    super(options, () => exchanging);
  }

  exchange(asks: readonly SubjectAsk[]): Promise<readonly PermitResult[]> {
    return this.apply(asks);
  }
}

type PermitRow = readonly [
  subject: string,
  gen: number,
  granted: number,
  left: number,
  outstanding: number,
  endsInMs: number,
  endsAtMs: number,
  durationMs: number,
  clockBehind: boolean,
  contended: boolean,
  limit: number,
];
type SettledAsk = Extract<PermitResult, { outcome: "settled" }>;

const exchanging: LaneStatement<SubjectAsk, PermitRow, SettledAsk> = {
  steps: exchangeSteps,
  valuesOf: (asks) => [
    asks.map((ask) => ask.subject),
    asks.map((ask) => ask.wantMin),
    asks.map((ask) => ask.wantMax),
    asks.map((ask) => ask.gen),
    asks.map((ask) => ask.returned),
    asks.map((ask) => ask.spent),
    asks.map((ask) => ask.holders),
  ],
  resultsOf: resultPerRow((row) => {
    const [, gen, granted, left, outstanding, endsInMs, endsAtMs, durationMs, clockBehind, contended, limit] = row;
    const time = { endsInMs, endsAtMs, durationMs, clockBehind };
    return { outcome: "settled", gen, granted, left, outstanding, ...time, contended, limit };
  }),
};
