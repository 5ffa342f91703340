import { laneOf } from "../../src/batching/keyed-batcher.ts";
import type { PermitResult, SubjectAsk } from "../../src/store/permit-ledger.ts";
import type { Store } from "../../src/store/store.ts";
import type { Charge, ChargeResult } from "../../src/store/usage-ledger.ts";

/** Settles the charges, each in its lane, and answers their results in order. */
export function settle({ usageLanes }: Store, charges: readonly Charge[]): Promise<readonly ChargeResult[]> {
  return inLanes(usageLanes, charges, (lane, own) => lane.settle(own));
}

/** Settles the asks, each in its lane, and answers their results in order. */
export function exchange({ permitLanes }: Store, asks: readonly SubjectAsk[]): Promise<readonly PermitResult[]> {
  return inLanes(permitLanes, asks, (lane, own) => lane.exchange(own));
}

/** Settles the charges in one call, in order. */
export async function settleInOrder(
  { usageLanes }: Store,
  charges: readonly Charge[],
): Promise<readonly ChargeResult[]> {
  return (await usageLanes[0]?.settle(charges)) ?? [];
}

async function inLanes<Lane, Item extends { readonly subject: string; readonly shared?: string }, Result>(
  lanes: readonly Lane[],
  items: readonly Item[],
  apply: (lane: Lane, items: readonly Item[]) => Promise<readonly Result[]>,
): Promise<readonly Result[]> {
  const settled = await Promise.all(
    lanes.map(async (lane, index) => {
      const own = items.filter(({ subject, shared = subject }) => laneOf(shared, lanes.length) === index);
      const results = await apply(lane, own);
      if (results.length !== own.length) throw new Error(`${results.length} results for ${own.length} items`);
      return own.map((item, i) => [item, results[i] as Result] as const);
    }),
  );
  const byItem = new Map(settled.flat());
  return items.map((item) => byItem.get(item) as Result);
}
