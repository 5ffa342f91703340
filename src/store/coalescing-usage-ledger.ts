import type { Ambient } from "../ambient/ambient.ts";
import { CoalescingLanes } from "../batching/coalescing-lanes.ts";
import { Unavailable } from "../domain/unavailable.ts";
import type { Spend } from "../domain/verification.ts";
import type { WaitingRoom } from "../domain/waiting-room.ts";
import type { LedgerWatch } from "./ledger-watch.ts";
import type { ChargeResult, UsageEngine, UsageLedger } from "./usage-ledger.ts";

/** Settles any number of waiting uses with few commits: all uses of one key that wait become one charge. */
export class CoalescingUsageLedger implements UsageLedger {
  readonly #lanes: CoalescingLanes<undefined, ChargeResult, Spend>;

  constructor(engines: readonly UsageEngine[], { clock, metrics, waitingRoom, watch }: UsageLedgerDeps) {
    this.#lanes = new CoalescingLanes({
      name: "usage",
      commits: engines.map(
        (engine) => (groups) => engine.settle(groups.map(({ keyId, callers }) => ({ keyId, wanted: callers.length }))),
      ),
      splitResult({ callers }, result) {
        if (result.outcome === "settled" && result.refilledAheadMs !== undefined)
          watch?.onRefillAhead(result.refilledAheadMs);
        return callers.map((_, i) => spendOf(i, result));
      },
      waitingLimit: waitingRoom,
      clock,
      metrics,
    });
  }

  spend(keyId: string): Promise<Spend> {
    return this.#lanes.submit(keyId, undefined);
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

/** The first `granted` uses get what remained after each of them, in order; the others find the counter used up. */
function spendOf(i: number, result: ChargeResult): Spend {
  if (result.outcome === "failed") throw new Unavailable(`the counter could not be settled: ${result.reason}`);
  if (result.outcome === "missing") return { outcome: "missing" };
  const { granted, remaining } = result;
  if (i < granted) return { outcome: "spent", remaining: remaining + granted - 1 - i };
  return { outcome: "exhausted", remaining };
}
