import type { Ambient } from "../ambient/ambient.ts";
import { CoalescingLanes, type SubjectGroup } from "../batching/coalescing-lanes.ts";
import { commitLive } from "../batching/commit-live.ts";
import type { Spend } from "../domain/verification.ts";
import type { WaitingRoom } from "../domain/waiting-room.ts";
import type { LedgerWatch } from "./ledger-watch.ts";
import { type ChargeLedger, type ChargeOutcome, spendOf, type UsageEngine, type UsageLedger } from "./usage-ledger.ts";

interface WaitingCharge {
  readonly wanted: number;
  readonly expiresAtMs: number;
  /** Decided when the batch is formed. */
  isExecuted: boolean;
}

const notExecuted = { outcome: "notExecuted" } as const;
/** One use of a caller in this process. All of them share it: an object for each would cost time. */
const oneUse: WaitingCharge = { wanted: 1, expiresAtMs: Number.POSITIVE_INFINITY, isExecuted: true };

/** Settles any number of waiting uses with few commits: all uses of one subject that wait become one charge. */
export class CoalescingUsageLedger implements UsageLedger, ChargeLedger {
  readonly #lanes: CoalescingLanes<WaitingCharge, ChargeOutcome, Spend | ChargeOutcome>;

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
          (live) => engine.settle(live.map(({ subject, items }) => ({ subject, wanted: wantedBy(items) }))),
          notExecuted,
        );
      }),
      splitResult(group, result) {
        if (result.outcome === "settled" && result.refilledAheadMs !== undefined)
          watch?.onRefillAhead(result.refilledAheadMs);
        return splitCharge(group, result);
      },
      waitingLimit: waitingRoom,
      clock,
      metrics,
    });
  }

  spend(subject: string): Promise<Spend> {
    return this.#lanes.submit(subject, oneUse) as Promise<Spend>;
  }

  charge(subject: string, wanted: number, expiresAtMs: number): Promise<ChargeOutcome> {
    return this.#lanes.submit(subject, { wanted, expiresAtMs, isExecuted: true }) as Promise<ChargeOutcome>;
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

/** Each caller gets its part of what was granted, in order, with what remained after it. */
function splitCharge(
  { callers }: SubjectGroup<WaitingCharge>,
  result: ChargeOutcome,
): readonly (Spend | ChargeOutcome)[] {
  if (result.outcome !== "settled") return callers.map(({ item }) => answerTo(item, result));
  const { remaining } = result;
  let left = result.granted;
  return callers.map(({ item }) => {
    const granted = item.isExecuted ? Math.min(left, item.wanted) : 0;
    left -= granted;
    return answerTo(item, { outcome: "settled", granted, remaining: remaining + left });
  });
}

function answerTo(item: WaitingCharge, part: ChargeOutcome): Spend | ChargeOutcome {
  if (item === oneUse) return spendOf(0, part);
  return item.isExecuted ? part : notExecuted;
}

function wantedBy(charges: readonly WaitingCharge[]): number {
  let wanted = 0;
  for (const charge of charges) wanted += charge.wanted;
  return wanted;
}
