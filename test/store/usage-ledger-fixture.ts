import { createMetrics } from "../../src/ambient/metrics.ts";
import { WaitingRoom } from "../../src/domain/waiting-room.ts";
import { CoalescingUsageLedger } from "../../src/store/coalescing-usage-ledger.ts";
import { type Charge, type ChargeResult, sharedBalance } from "../../src/store/usage-ledger.ts";
import { HeldCommits } from "../batching/held-commits.ts";
import { TestClock } from "../support/test-clock.ts";

/** A ledger on an engine that answers when told to, with these balances. Keys without one are missing. */
export function setUp(balances: Record<string, number>, waitingRoom = new WaitingRoom(100_000)) {
  const engine = new HeldCommits<Charge, ChargeResult>(({ subject, shared, cost, count }) => {
    const paying = shared === undefined ? [subject] : [subject, shared];
    if (paying.some((one) => balances[one] === undefined)) return { outcome: "missing" };
    const granted = Math.min(count, ...paying.map((one) => Math.floor((balances[one] as number) / cost)));
    for (const one of paying) balances[one] = (balances[one] as number) - granted * cost;
    const remaining = balances[subject] as number;
    return {
      outcome: "settled",
      granted,
      remaining,
      ...sharedBalance(shared === undefined ? undefined : balances[shared]),
    };
  });
  const clock = new TestClock();
  const ledger = new CoalescingUsageLedger([{ settle: engine.commit }], {
    clock,
    metrics: createMetrics(),
    waitingRoom,
  });
  return { engine, ledger, clock };
}

export function spendTimes(ledger: CoalescingUsageLedger, keyId: string, times: number) {
  return Promise.all(Array.from({ length: times }, () => ledger.spend([keyId], 1)));
}
