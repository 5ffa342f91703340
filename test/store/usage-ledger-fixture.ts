import { createMetrics } from "../../src/ambient/metrics.ts";
import { WaitingRoom } from "../../src/domain/waiting-room.ts";
import { CoalescingUsageLedger } from "../../src/store/coalescing-usage-ledger.ts";
import type { Charge, ChargeResult } from "../../src/store/usage-ledger.ts";
import { HeldCommits } from "../batching/held-commits.ts";
import { TestClock } from "../support/test-clock.ts";

/** A ledger on an engine that answers when told to, with these balances. Keys without one are missing. */
export function setUp(balances: Record<string, number>, waitingRoom = new WaitingRoom(100_000)) {
  const engine = new HeldCommits<Charge, ChargeResult>(({ subject: keyId, wanted }) => {
    const balance = balances[keyId];
    if (balance === undefined) return { outcome: "missing" };
    const granted = Math.min(balance, wanted);
    balances[keyId] = balance - granted;
    return { outcome: "settled", granted, remaining: balance - granted };
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
  return Promise.all(Array.from({ length: times }, () => ledger.spend(keyId)));
}
