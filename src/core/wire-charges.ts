import type { MessageInitShape } from "@bufbuild/protobuf";
import type {
  Charges,
  ChargesSchema,
  SettledCharges,
  SettledChargesSchema,
} from "../../gen/latchkey/core/v2/core_pb.js";
import { Unavailable } from "../domain/unavailable.ts";
import { remainingMax } from "../domain/usage.ts";
import { type ChargeResult, type ChargeRun, type SettledCharge, sharedBalance } from "../store/usage-ledger.ts";
import { counterSubject, impossible, wholeNumber } from "./checks.ts";
import { type ReceivedAnswer, type ReceivedCall, type ReceivedCharge, requireAnswer, type WireCharge } from "./wire.ts";

/* Charges, to and from the columns that go over the internal streams. */

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
    const own = owns.length === 0 ? "" : owns[at];
    const value = { subject: subjects[at], own, cost: costs[at], count: counts[at] };
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
  const numbers = new Array<number>(bytes.length >> 2);
  for (let at = 0; at < numbers.length; at++) numbers[at] = bytes.readInt32LE(4 * at);
  return numbers;
}

/** Throws on what no edge of ours sends. */
export function checkCharge({ subject, own, cost, count }: ReceivedCharge): WireCharge {
  const charge = {
    subject: counterSubject(subject, "counter"),
    cost: checkCost(cost, "cost"),
    count: checkCount(count, "number of callers"),
  };
  if (own === "") return charge;
  // Taken twice from one counter, a cost would be taken from a balance that cannot pay for it.
  if (counterSubject(own, "counter") === subject) throw impossible("counter");
  return { ...charge, own };
}

const noBalance = -1;

/** A charge that was settled, and the id of its call. */
export interface SettledCall {
  readonly id: number;
  readonly settled: SettledCharge;
}

export function toWireSettled(calls: readonly SettledCall[]): MessageInitShape<typeof SettledChargesSchema> {
  return {
    ids: toColumn(calls, ({ id }) => id),
    granted: toColumn(calls, ({ settled }) => settled.granted),
    remaining: toColumn(calls, ({ settled }) => settled.remaining),
    sharedRemaining: toColumn(calls, ({ settled }) => settled.sharedRemaining ?? noBalance),
  };
}

/** The settled charges of a message. What is missing of one becomes a number that `fromWireOutcome` refuses. */
export function fromWireSettled(columns: SettledCharges | undefined): SettledCall[] {
  if (columns === undefined) return [];
  const granted = fromColumn(columns.granted);
  const remaining = fromColumn(columns.remaining);
  const shared = fromColumn(columns.sharedRemaining);
  return fromColumn(columns.ids).map((id, at) => {
    const balance = sharedBalance(shared[at] === noBalance ? undefined : shared[at]);
    const settled = {
      outcome: "settled",
      granted: granted[at] ?? -1,
      remaining: remaining[at] ?? -1,
      ...balance,
    } as const;
    return { id: id >>> 0, settled };
  });
}

/** The outcome of this charge. Throws the error that the answer carries instead. */
export function fromWireOutcome(received: ReceivedAnswer, { own, count }: ChargeRun): ChargeResult {
  if (received.case === "missing") return { outcome: "missing" };
  const settled = requireAnswer(received, "charge");
  const { granted, remaining, sharedRemaining } = settled;
  const isPossible =
    granted >= 0 &&
    granted <= count &&
    Math.min(remaining, sharedRemaining ?? 0) >= 0 &&
    (sharedRemaining === undefined) === (own === undefined);
  if (!isPossible) throw new Unavailable("the coordinator has granted an impossible number");
  return settled;
}
