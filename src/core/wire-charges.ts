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

/** The charges of a message: each by the id of its call, with a function that reads it and throws on what no edge sends. */
export function* fromWireCharges(charges: Charges | undefined): Generator<[id: number, read: () => WireCharge]> {
  if (charges === undefined) return;
  const [ids, costs, counts] = [charges.ids, charges.costs, charges.counts].map(fromColumn) as [
    Int32Array,
    Int32Array,
    Int32Array,
  ];
  for (const [at, id] of ids.entries()) {
    const { [at]: subject } = charges.subjects;
    yield [id >>> 0, () => checkCharge({ subject, own: charges.owns[at], cost: costs[at], count: counts[at] })];
  }
}

/** Numbers of 32 bits, little-endian. */
function toColumn<Item>(items: readonly Item[], numberOf: (item: Item) => number): Uint8Array {
  const column = Buffer.allocUnsafe(4 * items.length);
  for (let at = 0; at < items.length; at++) column.writeInt32LE(numberOf(items[at] as Item) | 0, 4 * at);
  return column;
}

function fromColumn(column: Uint8Array): Int32Array {
  const bytes = Buffer.from(column.buffer, column.byteOffset, column.byteLength);
  const numbers = new Int32Array(bytes.length >> 2);
  for (let at = 0; at < numbers.length; at++) numbers[at] = bytes.readInt32LE(4 * at);
  return numbers;
}

type Unchecked = { readonly [Name in keyof WireCharge]: WireCharge[Name] | undefined };

function checkCharge({ subject, own, cost, count }: Unchecked): WireCharge {
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

/** A charge that was settled, and the id of its call. */
export interface SettledCall {
  readonly id: number;
  readonly settled: SettledCharge;
}

const noBalance = -1;

export function toWireSettled(calls: readonly SettledCall[]): MessageInitShape<typeof SettledChargesSchema> {
  return {
    ids: toColumn(calls, ({ id }) => id),
    granted: toColumn(calls, ({ settled }) => settled.granted),
    remaining: toColumn(calls, ({ settled }) => settled.remaining),
    sharedRemaining: toColumn(calls, ({ settled }) => settled.sharedRemaining ?? noBalance),
  };
}

/** The answer to each call, by its id, as if it had come alone. */
export function* fromWireSettled(settled: SettledCharges | undefined): Generator<[id: number, answer: ReceivedAnswer]> {
  if (settled === undefined) return;
  const columns = [settled.granted, settled.remaining, settled.sharedRemaining].map(fromColumn);
  for (const [at, id] of fromColumn(settled.ids).entries()) {
    const [granted = -1, remaining = -1, shared = noBalance] = columns.map((column) => column[at]);
    const balance = sharedBalance(shared === noBalance ? undefined : shared);
    yield [id >>> 0, { case: "charge", value: { outcome: "settled", granted, remaining, ...balance } }];
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
