import { soundRuns } from "../../domain/permit-window.ts";
import { Unavailable } from "../../domain/unavailable.ts";
import type { PermitEngine, PermitResult, SubjectAsk } from "../permit-ledger.ts";
import { exchangeRunsSteps, exchangeSteps } from "./exchange-statement.ts";
import { GuardedLane, type GuardedLaneOptions } from "./guarded-lane.ts";
import { type LaneStatement, resultPerRow } from "./guarded-statement.ts";

/** A lane of the permit ledger. */
export class PermitLane extends GuardedLane<SubjectAsk, PermitRow, SettledAsk> implements PermitEngine {
  readonly #makeWindows: MakeWindows;

  constructor(options: GuardedLaneOptions & { readonly makeWindows: MakeWindows }) {
    super(options);
    this.#makeWindows = options.makeWindows;
  }

  async exchange(asks: readonly SubjectAsk[]): Promise<readonly PermitResult[]> {
    const results = await this.#exchange(asks);
    const isAbsent = (i: number) => results[i]?.outcome === "missing" && asks[i]?.sentRule !== undefined;
    const absent = asks.filter((_, i) => isAbsent(i));
    if (absent.length === 0) return results;
    const made = (await this.#exchangeAbsent(absent)).values();
    return results.map((result, i) => (isAbsent(i) ? (made.next().value as PermitResult) : result));
  }

  #exchange(asks: readonly SubjectAsk[]): Promise<readonly PermitResult[]> {
    return this.apply(asks, asks.every(isSimple) ? exchanging : exchangingRuns);
  }

  /** Nothing was done for these asks: their free-standing windows are made, and they are settled again. */
  async #exchangeAbsent(asks: readonly SubjectAsk[]): Promise<readonly PermitResult[]> {
    try {
      await this.#makeWindows(asks);
      const results = await this.#exchange(asks);
      // Tidied away in between, which is as rare as a day is long.
      return results.map((result) => (result.outcome === "missing" ? notMade : result));
    } catch (error) {
      if (error instanceof Unavailable) return asks.map(() => notMade);
      throw error;
    }
  }
}

/** Makes the windows of subjects that have none. Throws `Unavailable`. */
export type MakeWindows = (asks: readonly Pick<SubjectAsk, "subject" | "sentRule">[]) => Promise<void>;

const notMade: PermitResult = { outcome: "failed", reason: "the window could not be made" };

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

function isSimple({ waiting, sentRule }: SubjectAsk): boolean {
  if (sentRule !== undefined) return false;
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
      asks.map(({ sentRule }) => sentRule?.limit ?? null),
      asks.map(({ sentRule }) => sentRule?.durationMs ?? null),
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
