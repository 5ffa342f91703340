import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Charges, ChargesSchema, SettledCharges } from "../../gen/latchkey/core/v2/core_pb.js";
import { Unavailable } from "../domain/unavailable.ts";
import { remainingMax } from "../domain/usage.ts";
import {
  type ChargeOutcome,
  type ChargeResult,
  type ChargeRun,
  type SettledCharge,
  sharedBalance,
} from "../store/usage-ledger.ts";
import { counterSubject, impossible, wholeNumber } from "./checks.ts";
import { type Answered, type ReceivedAnswer, requireAnswer } from "./wire.ts";

/* Charges, to and from the columns that go over the internal streams. */

/** A charge as an edge asks for it. */
export interface WireCharge extends ChargeRun {
  readonly subject: string;
}

/** Most callers of one charge: more than an edge has. With it no sum of costs leaves the numbers that are exact. */
const callersMax = 1_000_000;

const checkCost = wholeNumber(1, remainingMax);
const checkCount = wholeNumber(1, callersMax);

export function toWireCharges(
  calls: readonly { id: number; charge: WireCharge }[],
): MessageInitShape<typeof ChargesSchema> {
  return {
    ids: calls.map(({ id }) => id),
    subjects: calls.map(({ charge }) => charge.subject),
    owns: calls.some(({ charge }) => charge.own !== undefined) ? calls.map(({ charge }) => charge.own ?? "") : [],
    costs: calls.map(({ charge }) => charge.cost),
    counts: calls.map(({ charge }) => charge.count),
  };
}

/** The charge at this place of the columns. Throws on what no edge of ours sends. */
export function fromWireCharges({ subjects, owns, costs, counts }: Charges, at: number): WireCharge {
  const subject = counterSubject(subjects[at], "counter");
  const charge = { subject, cost: checkCost(costs[at], "cost"), count: checkCount(counts[at], "number of callers") };
  if (owns.length === 0 || owns[at] === "") return charge;
  const own = counterSubject(owns[at], "counter");
  // Taken twice from one counter, a cost would be taken from a balance that cannot pay for it.
  if (own === subject) throw impossible("counter");
  return { ...charge, own };
}

/** The answer to a charge that is not settled: those that are go into columns. */
export function toWireOutcome(outcome: Exclude<ChargeOutcome, SettledCharge>): Answered {
  switch (outcome.outcome) {
    case "notExecuted":
      return { case: "notExecuted", value: {} };
    case "missing":
      return { case: "missing", value: {} };
    case "failed":
      return { case: "failure", value: { reason: outcome.reason, ofOneKey: true } };
  }
}

/** What waits to be sent, in the order in which it was settled. */
export class SettledColumns {
  ids: number[] = [];
  granted: number[] = [];
  remaining: number[] = [];
  sharedRemaining: number[] = [];

  add(id: number, { granted, remaining, sharedRemaining }: SettledCharge): void {
    // The charges before the first one with two counters have none.
    if (sharedRemaining !== undefined && this.sharedRemaining.length === 0)
      this.sharedRemaining = this.ids.map(() => noBalance);
    if (sharedRemaining !== undefined || this.sharedRemaining.length > 0)
      this.sharedRemaining.push(sharedRemaining ?? noBalance);
    this.ids.push(id);
    this.granted.push(granted);
    this.remaining.push(remaining);
  }
}

const noBalance = -1;

/** The answer to each call, by its id, as if it had come alone. */
export function* fromWireSettled(settled: SettledCharges | undefined): Generator<[id: number, answer: ReceivedAnswer]> {
  if (settled === undefined) return;
  const { ids, granted, remaining, sharedRemaining } = settled;
  for (let at = 0; at < ids.length; at++) {
    const shared = sharedRemaining[at];
    const value: SettledCharge = {
      outcome: "settled",
      granted: granted[at] as number,
      remaining: remaining[at] as number,
      ...sharedBalance(shared === noBalance ? undefined : shared),
    };
    yield [ids[at] as number, { case: "charge", value }];
  }
}

/** The outcome of this charge. Throws the error that the answer carries instead. */
export function fromWireOutcome(received: ReceivedAnswer, { own, count }: ChargeRun): ChargeResult {
  if (received.case === "missing") return { outcome: "missing" };
  const settled = requireAnswer(received, "charge");
  const { granted, remaining, sharedRemaining } = settled;
  const isPossible =
    granted >= 0 && granted <= count && remaining >= 0 && (sharedRemaining === undefined) === (own === undefined);
  if (!isPossible) throw new Unavailable("the coordinator has granted an impossible number");
  return settled;
}
