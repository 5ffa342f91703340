import { settle, type UsageCounter } from "../../src/domain/usage.ts";
import { type Charge, type ChargeResult, refilledAhead, sharedBalance } from "../../src/store/usage-ledger.ts";

/** The usage counters of the plain store. */
export class MemoryCounters extends Map<string, UsageCounter> {
  readonly #settle: typeof settle;

  constructor(rule = settle) {
    super();
    this.#settle = rule;
  }

  settle(charge: Charge, nowMs: number): ChargeResult {
    const { subject, shared } = charge;
    const counter = this.get(subject);
    const other = shared === undefined ? undefined : this.get(shared);
    if (counter === undefined || (shared !== undefined && other === undefined)) return { outcome: "missing" };
    const settled = this.#settle(counter, charge, nowMs, other);
    this.set(subject, settled.counter);
    if (shared !== undefined && settled.shared !== undefined) this.set(shared, settled.shared);
    return {
      outcome: "settled",
      granted: settled.granted,
      remaining: settled.counter.remaining,
      ...sharedBalance(settled.shared?.remaining),
      ...refilledAhead(settled.refilledAheadMs),
    };
  }
}
