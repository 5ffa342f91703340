import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ChargesSchema, SettledChargesSchema } from "../../gen/latchkey/core/v2/core_pb.js";
import type { ReceivedCall } from "../../src/core/wire.ts";
import {
  checkCharge,
  fromWireCharges,
  fromWireSettled,
  type ReceivedCharge,
  toWireCharges,
  toWireSettled,
  type WireCharge,
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
        const found = fromWireSettled(fromBinary(SettledChargesSchema, bytes));
        expect(found).toEqual(calls.map(({ id, settled }) => ({ id, answer: { case: "charge", value: settled } })));
      }),
    );
  });

  it("with bytes left over or missing fail where something is missing, and nowhere else", () => {
    const run = { cost: 7, count: 1 };
    const charges = received([
      { id: 1, charge: { subject: "a", ...run } },
      { id: 2, charge: { subject: "b", ...run } },
    ]);
    charges.ids = Buffer.concat([charges.ids, Buffer.of(9)]);
    charges.costs = charges.costs.subarray(0, 7);
    const [first, second, ...others] = fromWireCharges(charges);
    expect([first && checked(first), second?.id, others]).toEqual([{ id: 1, charge: { subject: "a", ...run } }, 2, []]);
    expect(() => second && checked(second)).toThrow("an impossible cost");
  });
});
