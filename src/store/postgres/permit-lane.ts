import { soundRuns } from "../../domain/permit-window.ts";
import type { PermitEngine, PermitResult, SubjectAsk } from "../permit-ledger.ts";
import { exchangeRunsSteps, exchangeSteps } from "./exchange-statement.ts";
import { GuardedLane, type GuardedLaneOptions } from "./guarded-lane.ts";
import { type LaneStatement, resultPerRow } from "./lane-statement.ts";

/** A lane of the permit ledger. */
export class PermitLane extends GuardedLane<SubjectAsk, PermitRow, SettledAsk> implements PermitEngine {
  constructor(options: GuardedLaneOptions) {
    super(options, (asks) => (asks.every(isOfCostOne) ? exchanging : exchangingRuns));
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

function isOfCostOne({ waiting }: SubjectAsk): boolean {
  return waiting.length === 0 || (waiting.length === 1 && waiting[0]?.cost === 1);
}

const resultsOf = resultPerRow<SubjectAsk, PermitRow, SettledAsk>((row) => {
  const [, gen, granted, left, outstanding, endsInMs, endsAtMs, durationMs, clockBehind, contended, limit] = row;
  const time = { endsInMs, endsAtMs, durationMs, clockBehind };
  return { outcome: "settled", gen, granted, left, outstanding, ...time, contended, limit };
});

const exchanging: LaneStatement<SubjectAsk, PermitRow, SettledAsk> = {
  steps: exchangeSteps,
  valuesOf: (asks) => {
    const wanted = asks.map(({ waiting: [run] }) => Math.max(0, run?.count ?? 0));
    return [...valuesOf(asks), wanted, asks.map((ask, i) => (wanted[i] as number) + Math.max(0, ask.inAdvance))];
  },
  resultsOf,
};

/** The runs of all asks go into one list. An ask knows the first and the last of its own, counted from 1. */
const exchangingRuns: LaneStatement<SubjectAsk, PermitRow, SettledAsk> = {
  steps: exchangeRunsSteps,
  valuesOf: (asks) => {
    const runs = asks.map(({ waiting }) => soundRuns(waiting));
    let before = 0;
    const firsts = runs.map(({ length }) => {
      before += length;
      return before - length + 1;
    });
    return [
      ...valuesOf(asks),
      asks.map(({ inAdvance }) => Math.max(0, inAdvance)),
      runs.map((own) => own.reduce((least, { cost }) => Math.min(least, cost), Number.MAX_SAFE_INTEGER)),
      firsts,
      runs.map(({ length }, i) => (firsts[i] as number) + length - 1),
      runs.flat().map(({ cost }) => cost),
      runs.flat().map(({ count }) => count),
    ];
  },
  resultsOf,
};

/** What both statements have in common. */
function valuesOf(asks: readonly SubjectAsk[]): readonly unknown[] {
  return [
    asks.map((ask) => ask.subject),
    asks.map((ask) => ask.gen),
    asks.map((ask) => ask.returned),
    asks.map((ask) => ask.spent),
    asks.map((ask) => ask.holders),
  ];
}
