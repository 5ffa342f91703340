import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ChargesSchema, SettledChargesSchema } from "../../gen/latchkey/core/v2/core_pb.js";
import { type ReceivedCall, type ReceivedCharge, toWireOutcome, type WireCharge } from "../../src/core/wire.ts";
import {
  checkCharge,
  fromWireCharges,
  fromWireSettled,
  toWireCharges,
  toWireSettled,
} from "../../src/core/wire-charges.ts";

const id = fc.integer({ min: 1, max: 2 ** 32 - 1 });
const number = fc.integer({ min: 1, max: 2 ** 31 - 1 });
const count = fc.integer({ min: 1, max: 1_000_000 });
const counter = fc.string({ minLength: 1, maxLength: 257, unit: fc.constantFrom("a", "/", "é", "😀") });

const charge: fc.Arbitrary<WireCharge> = fc
  .record({ subject: counter, own: fc.option(counter, { nil: undefined }), cost: number, count })
  .filter(({ subject, own }) => subject !== own)
  .map(({ own, ...others }) => (own === undefined ? others : { ...others, own }));

const settled = fc
  .record({ granted: fc.nat(), remaining: fc.nat(), shared: fc.option(fc.nat(), { nil: undefined }) })
  .map(({ shared, ...others }) => ({
    outcome: "settled" as const,
    ...others,
    ...(shared !== undefined && { sharedRemaining: shared }),
  }));

const received = (calls: Parameters<typeof toWireCharges>[0]) =>
  fromBinary(ChargesSchema, toBinary(ChargesSchema, create(ChargesSchema, toWireCharges(calls))));

const checked = ({ id, question }: ReceivedCall) => ({ id, charge: checkCharge(question.value as ReceivedCharge) });

describe("charges as columns", () => {
  it("arrive as they were sent, each under its own id, in order", () => {
    fc.assert(
      fc.property(fc.array(fc.record({ id, charge })), (calls) => {
        expect(fromWireCharges(received(calls)).map(checked)).toEqual(calls);
      }),
    );
  });

  it("and what became of them arrive as they were sent", () => {
    fc.assert(
      fc.property(fc.array(fc.record({ id, settled })), (calls) => {
        const bytes = toBinary(SettledChargesSchema, create(SettledChargesSchema, toWireSettled(calls)));
        expect(fromWireSettled(fromBinary(SettledChargesSchema, bytes))).toEqual(calls);
      }),
    );
  });

  it("with bytes left over or missing fail where something is missing, and nowhere else", () => {
    const run = { own: "own", cost: 7, count: 1 };
    const charges = received([
      { id: 1, charge: { subject: "a", ...run } },
      { id: 2, charge: { subject: "b", ...run } },
      { id: 3, charge: { subject: "c", ...run } },
    ]);
    charges.owns.length = 2;
    charges.ids = Buffer.concat([charges.ids, Buffer.of(9)]);
    charges.counts = charges.counts.subarray(0, 7);
    const [first, second] = fromWireCharges(charges);
    expect(first && checked(first)).toEqual({ id: 1, charge: { subject: "a", ...run } });
    expect(() => second && checked(second)).toThrow("an impossible number of callers");
    charges.counts = charges.costs;
    const [, , third, ...others] = fromWireCharges(charges);
    expect(() => third && checked(third)).toThrow("an impossible counter");
    expect([third?.id, others]).toEqual([3, []]);
  });

  it("that could not be settled say why, and when to try again", () => {
    expect(toWireOutcome({ outcome: "failed", reason: "the row is locked" })).toEqual({
      case: "failure",
      value: {
        reason: "the counter could not be settled: the row is locked",
        retryAfterMs: 1000,
        ofOneKey: true,
        nothingDone: false,
      },
    });
  });
});
