import type { Ambient } from "../ambient/ambient.ts";
import { GroupCommit } from "../batching/group-commit.ts";
import { Unavailable } from "../domain/unavailable.ts";
import type { Spend } from "../domain/verification.ts";
import type { WaitingRoom } from "../domain/waiting-room.ts";
import type { LedgerWatch } from "./ledger-watch.ts";
import { type ChargeResult, laneOf, type UsageEngine, type UsageLedger } from "./usage-ledger.ts";

const keysPerBatchMax = 500;
const keysQueuedMax = 50_000;

/**
 * Settles any number of waiting uses with few commits: all uses of one key that wait become one charge, and up to 500
 * keys share one commit. A hot key thus costs one row per commit, however many callers it has. Each lane has one batch
 * under way.
 */
export class CoalescingUsageLedger implements UsageLedger {
  readonly #lanes: readonly GroupCommit<PendingCharge, ChargeResult>[];
  /** Charges not yet sent, by key: more uses of the key may still join them. */
  readonly #joinable = new Map<string, PendingCharge>();
  readonly #room: WaitingRoom;
  readonly #watch: LedgerWatch | undefined;

  constructor(engines: readonly UsageEngine[], deps: UsageLedgerDeps) {
    this.#watch = deps.watch;
    this.#room = deps.room;
    this.#lanes = engines.map(
      (engine) =>
        new GroupCommit({
          ...deps,
          name: "usage",
          batchMax: keysPerBatchMax,
          queueMax: keysQueuedMax,
          commit: (pending) => {
            for (const charge of pending) this.#joinable.delete(charge.keyId);
            return engine.settle(pending.map(({ keyId, uses }) => ({ keyId, wanted: uses.length })));
          },
        }),
    );
  }

  spend(keyId: string): Promise<Spend> {
    const joinable = this.#joinable.get(keyId);
    const refusal = this.#room.enter(joinable?.uses.length ?? 0);
    if (refusal !== undefined) return Promise.reject(refusal);
    return new Promise((resolve, reject) => {
      const use = { resolve, reject };
      if (joinable === undefined) this.#charge({ keyId, uses: [use] });
      else joinable.uses.push(use);
    });
  }

  async drained(): Promise<void> {
    await Promise.all(this.#lanes.map((lane) => lane.drained()));
  }

  #charge(charge: PendingCharge): void {
    this.#joinable.set(charge.keyId, charge);
    const lane = this.#lanes[laneOf(charge.keyId, this.#lanes.length)] as GroupCommit<PendingCharge, ChargeResult>;
    lane.submit(charge).then(
      (result) => {
        this.#room.leave(charge.uses.length);
        if (result.outcome === "settled" && result.refilledAheadMs !== undefined)
          this.#watch?.sawRefillAhead(result.refilledAheadMs);
        distribute(charge.uses, result);
      },
      (error: unknown) => {
        if (this.#joinable.get(charge.keyId) === charge) this.#joinable.delete(charge.keyId);
        this.#room.leave(charge.uses.length);
        for (const use of charge.uses) use.reject(error);
      },
    );
  }
}

interface UsageLedgerDeps extends Pick<Ambient, "clock" | "metrics"> {
  /** Where callers wait for a commit. */
  readonly room: WaitingRoom;
  readonly watch?: LedgerWatch;
}

interface PendingUse {
  readonly resolve: (spend: Spend) => void;
  readonly reject: (error: unknown) => void;
}

interface PendingCharge {
  readonly keyId: string;
  readonly uses: PendingUse[];
}

/** The first `granted` uses get what remained after each of them, in order; the others find the counter used up. */
function distribute(uses: readonly PendingUse[], result: ChargeResult): void {
  if (result.outcome === "failed") {
    for (const use of uses) use.reject(new Unavailable(`the counter could not be settled: ${result.reason}`));
    return;
  }
  uses.forEach((use, i) => {
    if (result.outcome === "missing") use.resolve({ outcome: "missing" });
    else if (i < result.granted)
      use.resolve({ outcome: "spent", remaining: result.remaining + result.granted - 1 - i });
    else use.resolve({ outcome: "exhausted", remaining: result.remaining });
  });
}
