import type { Ambient } from "../ambient/ambient.ts";
import { CoalescingLanes, type SubjectGroup } from "../batching/coalescing-lanes.ts";
import { commitLive, type LiveGroup } from "../batching/commit-live.ts";
import type { MaybePromise } from "../domain/maybe-promise.ts";
import type { Spend } from "../domain/verification.ts";
import type { WaitingRoom } from "../domain/waiting-room.ts";
import type { LedgerWatch } from "./ledger-watch.ts";
import {
  type Charge,
  type ChargeLedger,
  type ChargeOutcome,
  type ChargeResult,
  type ChargeRun,
  partOf,
  runsMax,
  type SpentCounters,
  spendOf,
  type UsageEngine,
  type UsageLedger,
} from "./usage-ledger.ts";

/** The runs of one caller: of a verification, or of an edge. */
interface WaitingCharge {
  readonly runs: readonly ChargeRun[];
  readonly expiresAtMs: number;
  readonly isSpend: boolean;
  /** Decided when the batch is formed. */
  isExecuted: boolean;
}

/** What was committed of a group: its callers' runs with equal neighbours merged, and their results. */
interface SettledGroup {
  readonly charges: readonly Charge[];
  readonly results: readonly ChargeResult[];
}

/** Most runs of one commit. */
const commitRunsMax = 2000;

const notExecuted = { outcome: "notExecuted" } as const;
/** One use of a caller in this process. All of them share it: an object for each would cost time. */
const oneUse: WaitingCharge = {
  runs: [{ cost: 1, count: 1 }],
  expiresAtMs: Number.POSITIVE_INFINITY,
  isSpend: true,
  isExecuted: true,
};

/**
 * Settles any number of waiting callers with few commits: all callers of one counter that wait are charged together, in
 * order of arrival, equal neighbours as one run. Callers with two counters gather at the one that they share.
 */
export class CoalescingUsageLedger implements UsageLedger, ChargeLedger {
  readonly #lanes: CoalescingLanes<WaitingCharge, SettledGroup | typeof notExecuted, Spend | ChargeOutcome>;

  constructor(engines: readonly UsageEngine[], { clock, metrics, waitingRoom, watch }: UsageLedgerDeps) {
    this.#lanes = new CoalescingLanes({
      name: "usage",
      commits: engines.map((engine) => (groups) => {
        const nowMs = clock.monotonicMs();
        for (const { callers } of groups) {
          for (const { item } of callers) item.isExecuted = nowMs <= item.expiresAtMs;
        }
        return commitLive(
          groups,
          (item) => item.isExecuted,
          (live) => settleGroups(engine, live),
          notExecuted,
        );
      }),
      splitResult(group, settled) {
        if ("results" in settled) {
          for (const result of settled.results) {
            if (result.outcome === "settled" && result.refilledAheadMs !== undefined)
              watch?.onRefillAhead(result.refilledAheadMs);
          }
        }
        return splitGroup(group, settled);
      },
      weight: { of: runsAdded, groupMax: runsMax, commitMax: commitRunsMax },
      waitingLimit: waitingRoom,
      clock,
      metrics,
    });
  }

  spend([own, shared]: SpentCounters, cost: number): Promise<Spend> {
    if (shared === undefined && cost === 1) return this.#lanes.submit(own, oneUse) as Promise<Spend>;
    const run = shared === undefined ? { cost, count: 1 } : { own, cost, count: 1 };
    return this.#lanes.submit(shared ?? own, { ...oneUse, runs: [run] }) as Promise<Spend>;
  }

  charge(subject: string, runs: readonly ChargeRun[], expiresAtMs: number): Promise<ChargeOutcome> {
    const charge = { runs, expiresAtMs, isSpend: false, isExecuted: true };
    return this.#lanes.submit(subject, charge) as Promise<ChargeOutcome>;
  }

  drained(): Promise<void> {
    return this.#lanes.drained();
  }
}

interface UsageLedgerDeps extends Pick<Ambient, "clock" | "metrics"> {
  /** Where callers wait for a commit. */
  readonly waitingRoom: WaitingRoom;
  readonly watch?: LedgerWatch;
}

/** How many runs a caller adds to those of its group, behind the caller before it. */
function runsAdded(charge: WaitingCharge, before: WaitingCharge | undefined): number {
  if (charge === before) return 0;
  const [first] = charge.runs;
  const last = before?.runs.at(-1);
  const isMerged = last !== undefined && last.cost === first?.cost && last.own === first.own;
  return charge.runs.length - Number(isMerged);
}

async function settleGroups(engine: UsageEngine, groups: readonly LiveGroup<WaitingCharge>[]): Promise<SettledGroup[]> {
  const chargesOf = groups.map(mergedCharges);
  const charges = chargesOf.flat();
  const results = await engine.settle(charges);
  if (results.length !== charges.length) throw new Error(`${results.length} results for ${charges.length} charges`);
  let from = 0;
  return chargesOf.map((charges) => {
    const settled = { charges, results: results.slice(from, from + charges.length) };
    from += charges.length;
    return settled;
  });
}

/** The runs of all callers of a group, in order, as charges. */
function mergedCharges({ subject, items }: LiveGroup<WaitingCharge>): readonly Charge[] {
  const charges: (Charge & { count: number })[] = [];
  let last: (Charge & { count: number }) | undefined;
  let before: WaitingCharge | undefined;
  for (const item of items) {
    if (item === oneUse && before === oneUse && last !== undefined) {
      last.count++;
      continue;
    }
    before = item;
    for (const { own, cost, count } of item.runs) {
      if (last !== undefined && isRunOf(last, own, cost, subject)) last.count += count;
      else {
        last = own === undefined ? { subject, cost, count } : { subject: own, shared: subject, cost, count };
        charges.push(last);
      }
    }
  }
  return charges;
}

/** Whether a run of a group is merged into this charge of the same group. */
function isRunOf(charge: Charge, own: string | undefined, cost: number, subject: string): boolean {
  return charge.cost === cost && (own === undefined ? charge.subject === subject : charge.subject === own);
}

/** Each caller gets its part of what was granted, in order, with what remained after it. */
function splitGroup(
  { subject, callers }: SubjectGroup<WaitingCharge>,
  settled: SettledGroup | typeof notExecuted,
): readonly MaybePromise<Spend | ChargeOutcome>[] {
  if (!("results" in settled)) return callers.map(() => notExecuted);
  const { charges, results } = settled;
  // The charge that the next run belongs to, and how many of its callers are in front of that run.
  let at = 0;
  let before = 0;
  /** Answers how many callers are in front of the run, and moves on behind it. */
  const passRun = ({ own, cost, count }: ChargeRun): number => {
    if (!isRunOf(charges[at] as Charge, own, cost, subject)) {
      at++;
      before = 0;
    }
    before += count;
    return before - count;
  };
  return callers.map(({ item }) => {
    if (!item.isExecuted) return notExecuted;
    if (item.isSpend) {
      const run = item.runs[0] as ChargeRun;
      const inFront = passRun(run);
      return spendOf(results[at] as ChargeResult, run.cost, inFront);
    }
    const parts = item.runs.map((run) => {
      const inFront = passRun(run);
      return partOf(results[at] as ChargeResult, run.cost, inFront, run.count);
    });
    return { outcome: "executed", results: parts };
  });
}
