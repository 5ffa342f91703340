import type { MessageInitShape } from "@bufbuild/protobuf";
import type {
  ChargeAnswer_Result,
  ChargeAnswer_ResultSchema,
  Charge as WireCharge,
} from "../../gen/latchkey/core/v2/core_pb.js";
import { Unavailable } from "../domain/unavailable.ts";
import { remainingMax } from "../domain/usage.ts";
import {
  type ChargeOutcome,
  type ChargeResult,
  type ChargeRun,
  runsMax,
  sharedBalance,
} from "../store/usage-ledger.ts";
import { counterSubject, impossible, wholeNumber } from "./checks.ts";
import { type Answered, type Question, type ReceivedAnswer, requireAnswer } from "./wire.ts";

/* Charges, to and from what goes over the internal streams. */

/** Most callers in one charge: more than an edge has. With it no sum of costs leaves the numbers that are exact. */
const callersMax = 1_000_000;

const checkCost = wholeNumber(1, remainingMax);
const checkCount = wholeNumber(1, callersMax);

export function toWireCharge(subject: string, runs: readonly ChargeRun[]): Question {
  const value = { subject, runs: runs.map(({ own = "", cost, count }) => ({ own, cost, count })) };
  return { case: "charge", value };
}

/** Throws on what no edge of ours sends. */
export function fromWireCharge({ subject, runs }: WireCharge): { subject: string; runs: readonly ChargeRun[] } {
  counterSubject(subject, "counter");
  if (runs.length < 1 || runs.length > runsMax) throw impossible("charge");
  let callers = 0;
  const checked = runs.map(({ own, cost, count }) => {
    callers += checkCount(count, "number of callers");
    const run = { cost: checkCost(cost, "cost"), count };
    if (own === "") return run;
    // Taken twice from one counter, a cost would be taken from a balance that cannot pay for it.
    if (counterSubject(own, "counter") === subject) throw impossible("counter");
    return { own, ...run };
  });
  if (callers > callersMax) throw impossible("charge");
  return { subject, runs: checked };
}

export function toWireOutcome(outcome: ChargeOutcome): Answered {
  if (outcome.outcome === "notExecuted") return { case: "notExecuted", value: {} };
  return { case: "charge", value: { results: outcome.results.map((result) => ({ outcome: toWireResult(result) })) } };
}

type WireOutcome = NonNullable<MessageInitShape<typeof ChargeAnswer_ResultSchema>["outcome"]>;

/** The names are the same on both sides. */
function toWireResult({ outcome, ...value }: ChargeResult): WireOutcome {
  return { case: outcome, value } as WireOutcome;
}

/** The outcome of a charge of these runs. Throws the error that the answer carries instead. */
export function fromWireOutcome(received: ReceivedAnswer, runs: readonly ChargeRun[]): ChargeOutcome {
  if (received.case === "notExecuted") return { outcome: "notExecuted" };
  const { results } = requireAnswer(received, "charge");
  if (results.length !== runs.length) throw new Unavailable("the coordinator has answered another charge");
  return {
    outcome: "executed",
    results: results.map(({ outcome }, i) => fromWireResult(outcome, runs[i] as ChargeRun)),
  };
}

function fromWireResult(outcome: ChargeAnswer_Result["outcome"], run: ChargeRun): ChargeResult {
  switch (outcome.case) {
    case "settled": {
      const { granted, remaining, sharedRemaining } = outcome.value;
      const isPossible =
        granted >= 0 && granted <= run.count && (sharedRemaining === undefined) === (run.own === undefined);
      if (!isPossible) throw new Unavailable("the coordinator has granted an impossible number");
      return { outcome: "settled", granted, remaining, ...sharedBalance(sharedRemaining) };
    }
    case "missing":
      return { outcome: "missing" };
    default:
      return { outcome: "failed", reason: outcome.value?.reason ?? "the coordinator does not know what became of it" };
  }
}
