import { fitting } from "../../src/domain/cost-runs.ts";
import { refilled, type Settlement, settle, type UsageCounter } from "../../src/domain/usage.ts";
import type { Charge, ChargeResult } from "../../src/store/usage-ledger.ts";
import { type BrokenStore, settleRule, usage } from "./break-store.ts";

/* Stores that get costs, or charges on two counters, wrong. */

/** Takes so much from each counter, whatever was granted. */
function taking(
  settlement: Settlement,
  before: { own: UsageCounter; shared: UsageCounter | undefined },
  taken: { own: number; shared: number },
): Settlement {
  const reduced = (counter: UsageCounter, by: number) => ({ ...counter, remaining: counter.remaining - by });
  return {
    ...settlement,
    counter: reduced(before.own, taken.own),
    shared: before.shared && reduced(before.shared, taken.shared),
  };
}

export const brokenCharges: readonly BrokenStore[] = [
  settleRule("keeps the part of a cost that there was, and refuses it", (counter, run, nowMs, shared) => {
    const right = settle(counter, run, nowMs, shared);
    const rest = (left: UsageCounter) => (right.granted < run.count ? Math.min(left.remaining, run.cost - 1) : 0);
    return taking(
      right,
      { own: right.counter, shared: right.shared },
      { own: rest(right.counter), shared: right.shared ? rest(right.shared) : 0 },
    );
  }),
  settleRule("charges the shared counter without the own one", (counter, run, nowMs, shared) => {
    const right = settle(counter, run, nowMs, shared);
    return shared === undefined ? right : { ...right, counter: refilled(counter, nowMs) };
  }),
  settleRule("charges the own counter without the shared one", (counter, run, nowMs, shared) => {
    const right = settle(counter, run, nowMs, shared);
    return shared === undefined ? right : { ...right, shared: refilled(shared, nowMs) };
  }),
  settleRule("keeps what the first counter has paid when the second cannot", (counter, run, nowMs, shared) => {
    const right = settle(counter, run, nowMs, shared);
    return { ...right, counter: settle(counter, run, nowMs).counter };
  }),
  settleRule("keeps what the second counter has paid when the first cannot", (counter, run, nowMs, shared) => {
    const right = settle(counter, run, nowMs, shared);
    return shared === undefined ? right : { ...right, shared: settle(shared, run, nowMs).counter };
  }),
  settleRule("takes from each counter what it has of what is wanted", (counter, run, nowMs, shared) => {
    const due = { own: refilled(counter, nowMs), shared: shared && refilled(shared, nowMs) };
    const wanted = run.cost * run.count;
    const taken = {
      own: Math.min(due.own.remaining, wanted),
      shared: Math.min(due.shared?.remaining ?? 0, wanted),
    };
    const granted = fitting(due.shared === undefined ? taken.own : Math.min(taken.own, taken.shared), run);
    return taking({ ...settle(counter, run, nowMs, shared), granted }, due, taken);
  }),
  settleRule("counts costs as uses", (counter, run, nowMs, shared) =>
    settle(counter, { ...run, cost: 1 }, nowMs, shared),
  ),
  settleRule("multiplies costs in 32 bits", (counter, run, nowMs, shared) => {
    const wanted = Math.imul(run.cost, run.count);
    const count = wanted <= 0 ? 0 : run.count;
    return settle(counter, { ...run, count }, nowMs, shared);
  }),
  settleRule("refills only the first counter", (counter, run, nowMs, shared) =>
    settle(counter, run, nowMs, shared && { ...shared, refill: undefined }),
  ),
  usage("stops at the first cost that does not fit", (inner) => async (charges) => {
    const stopped = new Set<string>();
    const results: ChargeResult[] = [];
    for (const charge of charges) {
      const isStopped = stopped.has(charge.shared ?? charge.subject);
      const [result] = await inner([isStopped ? { ...charge, count: 0 } : charge]);
      results.push(result as ChargeResult);
      if (result?.outcome === "settled" && result.granted < charge.count) stopped.add(charge.shared ?? charge.subject);
    }
    return results;
  }),
  usage(
    "settles the last charge first",
    (inner) => async (charges) => (await inner(charges.toReversed())).toReversed(),
  ),
  usage("settles the cheapest charge first", (inner) => async (charges) => {
    const order = charges.map((_, i) => i).sort((a, b) => (charges[a] as Charge).cost - (charges[b] as Charge).cost);
    const results = await inner(order.map((i) => charges[i] as Charge));
    return charges.map((_, i) => results[order.indexOf(i)] as ChargeResult);
  }),
  usage("settles only the first charge of a counter", (inner) => async (charges) => {
    const seen = new Set<string>();
    const once = charges.map((charge) => {
      const isSeen = seen.has(charge.subject);
      seen.add(charge.subject);
      return isSeen ? { ...charge, count: 0 } : charge;
    });
    return inner(once);
  }),
  usage("charges one counter where the other is missing", (inner) => async (charges) => {
    const results = await inner(charges);
    for (const [i, { subject, shared, cost, count }] of charges.entries()) {
      if (results[i]?.outcome !== "missing" || shared === undefined) continue;
      await inner([
        { subject, cost, count },
        { subject: shared, cost, count },
      ]);
    }
    return results;
  }),
  usage("stores a refill with a charge of which one counter is missing", (inner) => async (charges) => {
    const results = await inner(charges);
    for (const [i, { subject, shared }] of charges.entries()) {
      if (results[i]?.outcome !== "missing" || shared === undefined) continue;
      await inner([subject, shared].map((each) => ({ subject: each, cost: 1, count: 0 })));
    }
    return results;
  }),
];
