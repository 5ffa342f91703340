import type { Store } from "../../src/store/store.ts";
import { type Charge, type ChargeResult, laneOf } from "../../src/store/usage-ledger.ts";

/** Settles the charges, each in its lane, and answers their results in order. */
export async function settle(store: Store, charges: readonly Charge[]): Promise<readonly ChargeResult[]> {
  const { usageLanes } = store;
  const ofLane = (lane: number) => charges.filter(({ keyId }) => laneOf(keyId, usageLanes.length) === lane);
  const settled = await Promise.all(
    usageLanes.map(async (engine, lane) => {
      const own = ofLane(lane);
      const results = await engine.settle(own);
      if (results.length !== own.length) throw new Error(`${results.length} results for ${own.length} charges`);
      return own.map((charge, i) => [charge, results[i] as ChargeResult] as const);
    }),
  );
  const byCharge = new Map(settled.flat());
  return charges.map((charge) => byCharge.get(charge) as ChargeResult);
}
