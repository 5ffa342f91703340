import { create, toBinary } from "@bufbuild/protobuf";
import { SourceCodeInfo_LocationSchema } from "@bufbuild/protobuf/wkt";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { CreateKeyRequestSchema } from "../../../gen/latchkey/v1/keys_pb.js";
import { decodeBinary } from "../../../src/rpc/decoding/decode-binary.ts";
import { InvalidRequest } from "../../../src/rpc/invalid-request.ts";
import { bytes, entryOf, META, metaEntry, nestedStructs, STRING_VALUE, text } from "./build-wire.ts";
import { BODY_MAX_BYTES, CANARY, expectWithinDeadline, outcomeOf, refusalOf, told } from "./refusal.ts";

// Field numbers of CreateKeyRequest and of Refill.
const API_ID = 1;
const REFILL = 6;
const INTERVAL = 1;

const soundRequest = toBinary(
  CreateKeyRequestSchema,
  create(CreateKeyRequestSchema, {
    apiId: "api_1",
    remaining: 300,
    refill: { interval: "daily", amount: 1 },
    meta: { plan: "pro", nested: { list: [1, null, "two", { three: true }] } },
    expires: 1.5,
  }),
);

describe("decodeBinary refuses as malformed", () => {
  const malformed = "is not a valid protobuf message";
  it.each<[string, Uint8Array]>([
    ["text", Buffer.from(CANARY)],
    ["a truncated tag", Buffer.from([0x80])],
    ["field number 0", Buffer.from([0x02, 0x00])],
    ["a truncated string", Buffer.from([0x0a, 5, 0x61])],
    ["a truncated double", Buffer.from([0x51, 0, 0])],
    ["a truncated number", Buffer.from([0x28, 0x80])],
    ["a number without end", Buffer.concat([Buffer.from([0x28]), Buffer.alloc(11, 0x80)])],
    ["an unmatched end of group", Buffer.from([0x0c])],
    ["a length of 4 GiB", Buffer.from([0x32, 0xff, 0xff, 0xff, 0xff, 0x0f])],
    ["a string that reaches beyond its message", Buffer.from([0x32, 2, 0x0a, 5, 0x64, 0x61, 0x69, 0x6c, 0x79])],
    ["invalid UTF-8", bytes(API_ID, Buffer.from([...Buffer.from(CANARY), 0x80]))],
    ["a long string of invalid UTF-8", bytes(API_ID, Buffer.alloc(100, 0xff))],
    ["a surrogate in UTF-8", bytes(API_ID, Buffer.from([0xed, 0xa0, 0x80]))],
    ["an overlong NUL", bytes(API_ID, Buffer.from([0xc0, 0x80]))],
    ["invalid UTF-8 inside a message", bytes(REFILL, bytes(INTERVAL, Buffer.from([0xff])))],
    ["invalid UTF-8 in a Struct", metaEntry("a", bytes(STRING_VALUE, Buffer.from([0xff])))],
    ["a surrogate in a Struct", metaEntry("a", bytes(STRING_VALUE, Buffer.from([0xed, 0xa0, 0x80])))],
    ["invalid UTF-8 in a name in a Struct", metaEntry(Buffer.from([0xff]), text(STRING_VALUE, "x"))],
  ])("%s", (_, body) => {
    expect(refusalOf(() => decodeBinary(CreateKeyRequestSchema, body)).violations).toEqual([
      { path: "", message: malformed },
    ]);
  });

  it("packed numbers that reach beyond their list", () => {
    const body = Buffer.concat([Buffer.from([0x0a, 1, 0x80]), Buffer.from([0x01])]);
    expect(told(refusalOf(() => decodeBinary(SourceCodeInfo_LocationSchema, body)))).toBe(malformed);
  });

  it("damaged requests, unless they still keep every rule", () => {
    const damaged = fc
      .array(fc.tuple(fc.nat(soundRequest.length - 1), fc.nat(255)), { minLength: 1, maxLength: 4 })
      .map((changes) => changes.reduce((body, [at, byte]) => body.with(at, byte), soundRequest));
    fc.assert(
      fc.property(fc.oneof(fc.uint8Array(), damaged), (body) => {
        const outcome = outcomeOf(() => decodeBinary(CreateKeyRequestSchema, body));
        if (outcome instanceof InvalidRequest) return;
        expect(JSON.stringify(outcome)).not.toMatch(/\\u0000|\$unknown|__proto__/);
        expect(decodeBinary(CreateKeyRequestSchema, toBinary(CreateKeyRequestSchema, outcome))).toEqual(outcome);
      }),
      { numRuns: 5_000 },
    );
  });
});

describe("decodeBinary survives 64 KiB of", () => {
  const manyEntries = Array.from({ length: 1_500 }, (_, i) => entryOf(`k${i}`, i));
  it.each<[string, Uint8Array]>([
    ["one Struct, merged again and again", fill(bytes(META, ...manyEntries), bytes(META, Buffer.alloc(0)))],
    ["groups in groups", fill(Buffer.alloc(0), Buffer.from([0x9b, 0x06]))],
    ["nested Values", nestedStructs(5_000)],
    ["empty entries", bytes(META, fill(Buffer.alloc(0), bytes(1, Buffer.alloc(0))))],
    ["distinct entries", bytes(META, ...Array.from({ length: 4_000 }, (_, i) => entryOf(`${i}`, true)))],
  ])("%s", (_, body) => {
    expectWithinDeadline(() => outcomeOf(() => decodeBinary(CreateKeyRequestSchema, body)));
  });
});

/** `start`, and then `part` as often as the body may hold it. */
function fill(start: Uint8Array, part: Uint8Array): Uint8Array {
  const count = Math.floor((BODY_MAX_BYTES - start.length) / part.length);
  return Buffer.concat([start, ...Array.from({ length: count }, () => part)]);
}
