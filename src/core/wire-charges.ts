import type { MessageInitShape } from "@bufbuild/protobuf";
import type {
  Charges,
  ChargesSchema,
  SettledCharges,
  SettledChargesSchema,
} from "../../gen/latchkey/core/v2/core_pb.js";
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
import { type Answered, type ReceivedAnswer, type ReceivedCall, requireAnswer } from "./wire.ts";

/* Charges, to and from the columns that go over the internal streams. */

/** A charge as an edge asks for it. */
export interface WireCharge extends ChargeRun {
  readonly subject: string;
}

/** A charge as it was received: anything can be missing. */
export type ReceivedCharge = { readonly [Name in keyof Required<WireCharge>]: WireCharge[Name] | undefined };

/** Most callers of one charge: more than an edge has. With it no sum of costs leaves the numbers that are exact. */
const callersMax = 1_000_000;

const checkCost = wholeNumber(1, remainingMax);
const checkCount = wholeNumber(1, callersMax);

export function toWireCharges(
  calls: readonly { readonly id: number; readonly charge: WireCharge }[],
): MessageInitShape<typeof ChargesSchema> {
  return {
    ids: toColumn(calls, ({ id }) => id),
    subjects: calls.map(({ charge }) => charge.subject),
    owns: calls.some(({ charge }) => charge.own !== undefined) ? calls.map(({ charge }) => charge.own ?? "") : [],
    costs: toColumn(calls, ({ charge }) => charge.cost),
    counts: toColumn(calls, ({ charge }) => charge.count),
  };
}

/** The charges of a message as calls, not checked yet. */
export function fromWireCharges(charges: Charges | undefined): ReceivedCall[] {
  if (charges === undefined) return [];
  const { subjects, owns } = charges;
  const costs = fromColumn(charges.costs);
  const counts = fromColumn(charges.counts);
  return fromColumn(charges.ids).map((id, at) => {
    const value = { subject: subjects[at], own: owns[at], cost: costs[at], count: counts[at] };
    return { id: id >>> 0, question: { case: "charge", value } };
  });
}

/** Numbers of 32 bits, little-endian. */
function toColumn<Item>(items: readonly Item[], numberOf: (item: Item) => number): Uint8Array {
  const column = Buffer.allocUnsafe(4 * items.length);
  for (let at = 0; at < items.length; at++) column.writeInt32LE(numberOf(items[at] as Item) | 0, 4 * at);
  return column;
}

function fromColumn(column: Uint8Array): number[] {
  const bytes = Buffer.from(column.buffer, column.byteOffset, column.byteLength);
  return Array.from({ length: bytes.length >> 2 }, (_, at) => bytes.readInt32LE(4 * at));
}

/** Throws on what no edge of ours sends. */
export function checkCharge({ subject, own, cost, count }: ReceivedCharge): WireCharge {
  const charge = {
    subject: counterSubject(subject, "counter"),
    cost: checkCost(cost, "cost"),
    count: checkCount(count, "number of callers"),
  };
  if (own === undefined || own === "") return charge;
  // Taken twice from one counter, a cost would be taken from a balance that cannot pay for it.
  if (counterSubject(own, "counter") === subject) throw impossible("counter");
  return { ...charge, own };
}

export function toWireOutcome(outcome: ChargeOutcome): Answered {
  switch (outcome.outcome) {
    case "settled":
      return { case: "charge", value: outcome };
    case "failed":
      return { case: "failure", value: { reason: outcome.reason, ofOneKey: true } };
    default:
      return { case: outcome.outcome, value: {} };
  }
}

const noBalance = -1;

export function toWireSettled(
  calls: readonly { readonly id: number; readonly settled: SettledCharge }[],
): MessageInitShape<typeof SettledChargesSchema> {
  return {
    ids: toColumn(calls, ({ id }) => id),
    granted: toColumn(calls, ({ settled }) => settled.granted),
    remaining: toColumn(calls, ({ settled }) => settled.remaining),
    sharedRemaining: toColumn(calls, ({ settled }) => settled.sharedRemaining ?? noBalance),
  };
}

/** The settled charges of a message as the answers to their calls. */
export function fromWireSettled(settled: SettledCharges | undefined): { id: number; answer: ReceivedAnswer }[] {
  if (settled === undefined) return [];
  const columns = [settled.granted, settled.remaining, settled.sharedRemaining].map(fromColumn);
  return fromColumn(settled.ids).map((id, at) => {
    const [granted = -1, remaining = -1, shared = noBalance] = columns.map((column) => column[at]);
    const balance = sharedBalance(shared === noBalance ? undefined : shared);
    return { id: id >>> 0, answer: { case: "charge", value: { outcome: "settled", granted, remaining, ...balance } } };
  });
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
