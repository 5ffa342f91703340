import { toBinary } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { decodeJson } from "../../src/rpc/decoding/decode-json.ts";
import { compileGadgets } from "../support/gadgets.ts";

const { takeGadgets: codec } = compileGadgets()();
const { input } = codec.method;

/** Absent may mean 1, and zero means zero: what callers leave out and what they send as 0 must not be mixed up. */
describe("what is absent and what is zero stay apart", () => {
  it.each<[string, object]>([
    ["no message", {}],
    ["a message without its number", { remaining: {} }],
    ["zero", { remaining: { cost: 0 } }],
    ["one", { remaining: { cost: 1 } }],
    ["the largest number", { remaining: { cost: 2_147_483_647 } }],
    ["a number that is absent and one that is zero in a list", { ratelimits: [{ name: "a" }, { name: "b", cost: 0 }] }],
    ["zero at the top", { default: 0 }],
    ["an empty text", { permissions: "" }],
  ])("%s", (_, fields) => {
    const json = Buffer.from(JSON.stringify({ key: "k", ...fields }));
    const wire = Buffer.from(toBinary(input, decodeJson(input, json)));
    for (const message of [codec.decodeJson(json, 0, json.length), codec.decodeBinary(wire, 0)]) {
      expect(message).toMatchObject(fields);
      const { remaining, ratelimits, default: count, permissions } = message as unknown as Record<string, unknown>;
      const sent = { remaining, ratelimits, default: count, permissions };
      expect(JSON.parse(JSON.stringify(sent, withoutTypes))).toEqual({ ratelimits: [], ...fields });
    }
  });
});

function withoutTypes(name: string, value: unknown): unknown {
  return name === "$typeName" ? undefined : value;
}
