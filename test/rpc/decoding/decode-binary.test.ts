import {
  create,
  type DescMessage,
  type JsonObject,
  type JsonValue,
  type MessageInitShape,
  toBinary,
  toJsonString,
} from "@bufbuild/protobuf";
import { DoubleValueSchema, SourceCodeInfo_LocationSchema } from "@bufbuild/protobuf/wkt";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ServerReflectionRequestSchema } from "../../../gen/grpc/reflection/v1/reflection_pb.js";
import { ErrorDetailSchema } from "../../../gen/latchkey/v1/errors_pb.js";
import { CreateKeyRequestSchema } from "../../../gen/latchkey/v1/keys_pb.js";
import { decodeBinary } from "../../../src/rpc/decoding/decode-binary.ts";
import { decodeJson } from "../../../src/rpc/decoding/decode-json.ts";
import type { InvalidRequest } from "../../../src/rpc/invalid-request.ts";
import {
  bytes,
  double,
  entryOf,
  LIST_VALUE,
  META,
  metaEntry,
  metaOf,
  NUMBER_VALUE,
  STRING_VALUE,
  text,
  valueBytes,
  varint,
} from "./build-wire.ts";
import { CANARY, refusalOf, told } from "./refusal.ts";

// Field numbers of CreateKeyRequest and of Refill.
const API_ID = 1;
const BYTE_LENGTH = 3;
const REMAINING = 5;
const REFILL = 6;
const EXPIRES = 10;
const INTERVAL = 1;

const fullRequest = create(CreateKeyRequestSchema, {
  apiId: "api_é😀",
  prefix: "sk",
  byteLength: -1,
  ownerId: "anna",
  remaining: 0,
  refill: { interval: "daily", amount: 2 ** 31 - 1, carryOver: true },
  ratelimit: { async: false, limit: 1, duration: 2 ** 32 - 1 },
  name: "",
  meta: { "": null, plan: "pro", nested: { list: [1, -0.5, [], {}, "two", { three: true }] } },
  expires: 253402300799999,
  enabled: false,
});

describe("decodeBinary accepts", () => {
  it("every field of a request", () => {
    expectRoundTrip(CreateKeyRequestSchema, fullRequest);
  });

  it("an empty body as the empty message", () => {
    expect(decodeBinary(CreateKeyRequestSchema, new Uint8Array())).toStrictEqual(create(CreateKeyRequestSchema));
  });

  it("oneofs, repeated messages and packed numbers", () => {
    expectRoundTrip(ServerReflectionRequestSchema, { messageRequest: { case: "listServices", value: "*" } });
    expectRoundTrip(ErrorDetailSchema, { violations: [{ path: "a" }, {}, { path: "b" }] });
    expectRoundTrip(SourceCodeInfo_LocationSchema, { path: [1, 300, -1], leadingDetachedComments: ["a", "b"] });
  });

  it("repeated numbers that are not packed", () => {
    const body = Buffer.concat([varint(1, 7), varint(1, 8)]);
    expect(decodeBinary(SourceCodeInfo_LocationSchema, body).path).toEqual([7, 8]);
  });

  it("a map entry without its key when that is empty, as some encoders write it", () => {
    const body = bytes(META, bytes(1, bytes(2, text(STRING_VALUE, "x"))));
    expect(decodeBinary(CreateKeyRequestSchema, body).meta).toStrictEqual({ "": "x" });
  });

  it("nesting as deep as JSON may be", () => {
    for (const value of [nestedObjects(30), { list: nestedLists(29) }]) {
      const request = { apiId: "a", meta: value as JsonObject };
      expectRoundTrip(CreateKeyRequestSchema, request);
      expect(decodeJson(CreateKeyRequestSchema, Buffer.from(JSON.stringify(request))).meta).toEqual(value);
    }
  });

  it("what JSON accepts, and reads the same from it", () => {
    fc.assert(
      fc.property(
        metaObject,
        plainText,
        fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }),
        (meta, apiId, remaining) => {
          const message = create(CreateKeyRequestSchema, { apiId, remaining, meta: meta as JsonObject });
          const fromJson = decodeJson(
            CreateKeyRequestSchema,
            Buffer.from(toJsonString(CreateKeyRequestSchema, message)),
          );
          expect(decodeBinary(CreateKeyRequestSchema, toBinary(CreateKeyRequestSchema, message))).toStrictEqual(
            fromJson,
          );
        },
      ),
    );
  });
});

describe("decodeBinary refuses", () => {
  const nul = "must not contain the NUL character";
  const twice = "has the same field twice";
  const noKind = "meta: has a value of no kind";
  it.each<[string, Uint8Array, string]>([
    ["an unknown field", text(99, CANARY), "has unknown field number 99"],
    ["an unknown group", Buffer.from([0x9b, 0x06, 0x08, 0x01, 0x9c, 0x06]), "has unknown field number 99"],
    ["an unknown field inside", bytes(REFILL, text(4, CANARY)), "refill: has unknown field number 4"],
    ["an unknown field in a Struct", bytes(META, text(2, CANARY)), "meta: has unknown field number 2"],
    [
      "an unknown field in an entry",
      metaEntry("a", valueBytes(true), varint(3, 1)),
      "meta: has unknown field number 3",
    ],
    ["a string for a number", text(BYTE_LENGTH, CANARY), "byteLength: has the wrong wire type"],
    ["a number for a string", varint(API_ID, 5), "apiId: has the wrong wire type"],
    ["a number for a message", varint(REFILL, 5), "refill: has the wrong wire type"],
    ["a number for a map", bytes(META, varint(1, 5)), "meta: has the wrong wire type"],
    ["a number for a double", varint(EXPIRES, 5), "expires: has the wrong wire type"],
    ["NUL in a string", text(API_ID, `${CANARY}\0`), `apiId: ${nul}`],
    ["NUL inside a message", bytes(REFILL, text(INTERVAL, `\0${CANARY}`)), `refill.interval: ${nul}`],
    ["NUL in a Struct", metaEntry("a", text(STRING_VALUE, `${CANARY}\0`)), `meta: ${nul}`],
    ["NUL in a name in a Struct", metaEntry(`${CANARY}\0`, valueBytes(true)), `meta: ${nul}`],
    ["NUL in a list in a Struct", metaOf({ a: [{ b: `${CANARY}\0` }] }), `meta: ${nul}`],
    ["a byte order mark", text(API_ID, `\uFEFF${CANARY}`), "apiId: must not start with a byte order mark"],
    [
      "a byte order mark before __proto__",
      metaEntry("\uFEFF__proto__", valueBytes(true)),
      "meta: must not start with a byte order mark",
    ],
    ["NaN", double(EXPIRES, Number.NaN), "expires: must be a finite number"],
    ["Infinity", double(EXPIRES, Number.POSITIVE_INFINITY), "expires: must be a finite number"],
    ["NaN in a Struct", metaEntry("a", double(NUMBER_VALUE, Number.NaN)), "meta: must be a finite number"],
    ["Infinity in a list in a Struct", metaOf({ a: [Number.NEGATIVE_INFINITY] }), "meta: must be a finite number"],
    ["__proto__", metaEntry("__proto__", valueBytes(CANARY)), "meta: has a field with a reserved name"],
    ["__proto__ inside", metaOf(JSON.parse('{"a":[{"__proto__":1}]}')), "meta: has a field with a reserved name"],
    ["a value of no kind", metaEntry("a", Buffer.alloc(0)), noKind],
    ["a value of no kind in a list", metaEntry("a", bytes(LIST_VALUE, bytes(1, Buffer.alloc(0)))), noKind],
    ["a name without a value", bytes(META, bytes(1, text(1, CANARY))), "meta: has a field without a value"],
    ["a value of two kinds", metaEntry("a", Buffer.concat([valueBytes(true), valueBytes(CANARY)])), `meta: ${twice}`],
    ["a field twice", Buffer.concat([varint(REMAINING, 1), varint(REMAINING, 2)]), twice],
    ["a message twice", Buffer.concat([bytes(REFILL, Buffer.alloc(0)), bytes(REFILL, Buffer.alloc(0))]), twice],
    ["a field twice inside", bytes(REFILL, text(INTERVAL, "daily"), text(INTERVAL, CANARY)), `refill: ${twice}`],
    ["a Struct twice", Buffer.concat([metaOf({}), metaOf({ a: CANARY })]), twice],
    ["a name twice in a Struct", bytes(META, entryOf("a", 1), entryOf("a", CANARY)), `meta: ${twice}`],
    ["a value twice in an entry", metaEntry("a", valueBytes(1), bytes(2, valueBytes(CANARY))), `meta: ${twice}`],
    ["objects nested beyond JSON", metaOf(nestedObjects(31) as JsonObject), "meta: is nested more than 32 deep"],
    ["lists nested beyond JSON", metaOf({ list: nestedLists(30) }), "meta: is nested more than 32 deep"],
  ])("%s", (_, body, message) => {
    const error = refuse(CreateKeyRequestSchema, body);
    expect(told(error)).toBe(message);
    expect(JSON.stringify(error.violations)).not.toContain(CANARY);
  });

  it("two members of a oneof", () => {
    expect(told(refuse(ServerReflectionRequestSchema, Buffer.concat([text(3, "a"), text(4, "b")])))).toBe(twice);
  });

  it("numbers that are not finite, in a message of any kind", () => {
    const body = toBinary(DoubleValueSchema, create(DoubleValueSchema, { value: Number.NaN }));
    expect(told(refuse(DoubleValueSchema, body))).toBe("value: must be a finite number");
  });

  it("all faults of a request at once, up to ten", () => {
    const two = Buffer.concat([text(API_ID, "\0"), double(EXPIRES, Number.NaN)]);
    expect(told(refuse(CreateKeyRequestSchema, two))).toBe(`apiId: ${nul}; expires: must be a finite number`);
    const many = Buffer.concat(Array.from({ length: 11 }, (_, i) => varint(100 + i, 1)));
    expect(refuse(CreateKeyRequestSchema, many).violations).toHaveLength(10);
  });
});

const plainText = fc
  .string({ unit: "grapheme" })
  .filter((value) => value !== "__proto__" && !value.includes("\0") && !value.startsWith("\uFEFF"));
const metaObject = fc.object({
  key: plainText,
  values: [plainText, fc.maxSafeInteger(), fc.boolean(), fc.constant(null)],
  maxDepth: 4,
});

function expectRoundTrip<Desc extends DescMessage>(desc: Desc, init: MessageInitShape<Desc>): void {
  const message = create(desc, init);
  expect(decodeBinary(desc, toBinary(desc, message))).toStrictEqual(message);
}

function nestedObjects(levels: number): JsonValue {
  return levels === 0 ? {} : { a: nestedObjects(levels - 1) };
}

function nestedLists(levels: number): JsonValue {
  return levels === 0 ? [] : [nestedLists(levels - 1)];
}

function refuse(desc: DescMessage, body: Uint8Array): InvalidRequest {
  return refusalOf(() => decodeBinary(desc, body));
}
