import { create, type DescMessage, type JsonObject, type MessageInitShape, toJsonString } from "@bufbuild/protobuf";
import { OptionSchema } from "@bufbuild/protobuf/wkt";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ServerReflectionRequestSchema } from "../../../gen/grpc/reflection/v1/reflection_pb.js";
import {
  HealthCheckRequestSchema,
  HealthCheckResponse_ServingStatus,
  HealthCheckResponseSchema,
  HealthListResponseSchema,
} from "../../../gen/health/v1/health_pb.js";
import { ErrorDetailSchema } from "../../../gen/latchkey/v1/errors_pb.js";
import { CreateKeyRequestSchema, VerifyKeyRequestSchema } from "../../../gen/latchkey/v1/keys_pb.js";
import { decodeJson } from "../../../src/rpc/decoding/decode-json.ts";
import type { InvalidRequest } from "../../../src/rpc/invalid-request.ts";
import { CANARY, expectWithinDeadline, KEY, refusalOf, told } from "./refusal.ts";

/** The requests of these tests contain it. No answer may. */
const SENT = /canary-7f3a|5150|acme_/;

describe("decodeJson accepts", () => {
  it("every field of a request", () => {
    const body = {
      apiId: "api_1",
      prefix: "sk",
      byteLength: 16,
      ownerId: "anna",
      remaining: -(2 ** 31),
      refill: { interval: "daily", amount: 2 ** 31 - 1, carryOver: true },
      ratelimit: { async: false, limit: 1e3, duration: 2 ** 32 - 1 },
      name: "",
      meta: { plan: null, nested: { list: [1, "two", { three: 0.3 }] } },
      expires: 253402300799999.5,
      enabled: false,
      ratelimits: [
        { name: "", limit: 0, duration: 1 },
        { name: "b", async: false, limit: -1, duration: 2 ** 32 - 1 },
      ],
      costMax: -1,
      permissions: ["docs.*", ""],
      ipAllow: ["anything"],
      environment: "test",
      externalId: "anna",
    };
    expect(decode(CreateKeyRequestSchema, body)).toStrictEqual(create(CreateKeyRequestSchema, body));
  });

  it("a negative zero as zero, for whole numbers", () => {
    expect(decodeJson(CreateKeyRequestSchema, Buffer.from('{"remaining":-0}')).remaining).toBe(0);
  });

  it("repeated messages and enums by name", () => {
    const body = { violations: [{ path: "a", message: "b" }, {}] };
    expect(decode(ErrorDetailSchema, body)).toStrictEqual(create(ErrorDetailSchema, body));
    expect(decode(HealthCheckResponseSchema, { status: "UNKNOWN" }).status).toBe(
      HealthCheckResponse_ServingStatus.UNKNOWN,
    );
    expect(decode(HealthCheckResponseSchema, { status: "SERVING" }).status).toBe(
      HealthCheckResponse_ServingStatus.SERVING,
    );
  });

  it("an empty list, and null for one whose absence means all, as absent", () => {
    const body = { apiId: "a", permissions: [], ratelimits: [], ipAllow: null };
    expect(decode(CreateKeyRequestSchema, body)).toStrictEqual(create(CreateKeyRequestSchema, { apiId: "a" }));
    const verification = { key: "k", ratelimits: [] };
    expect(decode(VerifyKeyRequestSchema, verification)).toStrictEqual(create(VerifyKeyRequestSchema, verification));
  });

  it("what protobuf prints, with and without defaults, but for an empty list whose absence means all", () => {
    fc.assert(
      fc.property(createKeyRequest, fc.boolean(), (init, alwaysEmitImplicit) => {
        const message = create(CreateKeyRequestSchema, init);
        const text = toJsonString(CreateKeyRequestSchema, message, { alwaysEmitImplicit });
        const sent = text.replace(/,"ipAllow":\[\](?=[,}])/g, "");
        expect(decodeJson(CreateKeyRequestSchema, Buffer.from(sent))).toStrictEqual(message);
      }),
    );
  });
});

describe("decodeJson refuses", () => {
  const unknownField =
    "has an unknown field (known: apiId, prefix, byteLength, ownerId, remaining, refill, ratelimit, name, meta, " +
    "expires, enabled, useDefaults, permissions, ipAllow, ratelimits, costMax, environment, externalId)";
  const unknownInRefill = "refill: has an unknown field (known: interval, amount, carryOver)";
  const int32Range = "must be between 0 and 2147483647";
  it.each<[string, unknown, string]>([
    ["text at the top", CANARY, "must be an object"],
    ["null at the top", null, "must be an object"],
    ["an array at the top", [CANARY], "must be an object"],
    ["a number for a string", { apiId: 5150 }, "apiId: must be a string"],
    ["an object for a string", { apiId: { a: CANARY } }, "apiId: must be a string"],
    ["a string for a boolean", { enabled: CANARY }, "enabled: must be a boolean"],
    ["a number for a boolean", { enabled: 1 }, "enabled: must be a boolean"],
    ["a string for an int32", { remaining: "5150" }, "remaining: must be a number"],
    ["a boolean for an int32", { remaining: true }, "remaining: must be a number"],
    ["a fraction for an int32", { remaining: 5150.5 }, "remaining: must be a whole number"],
    ["an int32 too large", { remaining: 2 ** 31 }, `remaining: ${int32Range}`],
    ["an int32 too small", { remaining: -(2 ** 31) - 1 }, `remaining: ${int32Range}`],
    ["a negative uint32", { ratelimit: { duration: -1 } }, "ratelimit.duration: must be between 1000 and 2592000000"],
    [
      "a uint32 too large",
      { ratelimit: { duration: 2 ** 32 } },
      "ratelimit.duration: must be between 1000 and 2592000000",
    ],
    ["a short name that is nothing like it", { zz: 1 }, unknownField],
    ["a string for a double", { expires: CANARY }, "expires: must be a number"],
    ["a named number for a double", { expires: "Infinity" }, "expires: must be a number"],
    ["a string for a message", { refill: CANARY }, "refill: must be an object"],
    ["an array for a message", { refill: [] }, "refill: must be an object"],
    ["a string for a Struct", { meta: CANARY }, "meta: must be an object"],
    ["an array for a Struct", { meta: [CANARY] }, "meta: must be an object"],
    ["a string inside a message", { refill: { amount: CANARY } }, "refill.amount: must be a number"],
    ["an unknown field", { frobnicate: CANARY }, unknownField],
    ["a misspelt field", { ratelimt: CANARY }, "has an unknown field; did you mean ratelimit?"],
    ["swapped letters", { nmae: CANARY }, "has an unknown field; did you mean name?"],
    ["three typing errors", { nnnne: CANARY }, unknownField],
    ["another case", { RATELIMIT: CANARY }, "has an unknown field; did you mean ratelimit?"],
    ["snake case", { byte_length: 16 }, "has an unknown field; did you mean byteLength?"],
    ["snake case inside", { refill: { carry_over: true } }, "refill: has an unknown field; did you mean carryOver?"],
    ["an unknown field that is null", { frobnicate: null }, unknownField],
    ["a key for a name", { [KEY]: 1 }, unknownField],
    ["a key for a name, inside", { refill: { [KEY]: 1 } }, unknownInRefill],
    ["a name that is not plain", { [CANARY]: 1 }, unknownField],
    ["a name that is not plain, inside", { refill: { [CANARY]: 1 } }, unknownInRefill],
    ["a name of 64 KiB", { ["remaining".repeat(7_000)]: CANARY }, unknownField],
    ["an inherited name", { constructor: CANARY }, unknownField],
    ["several unknown fields, told once", { [KEY]: 1, [CANARY]: 2 }, unknownField],
  ])("%s", (_, body, message) => {
    const error = refuse(CreateKeyRequestSchema, JSON.stringify(body));
    expect(told(error)).toBe(message);
    expect(`${error.message}${JSON.stringify(error.violations)}`).not.toMatch(SENT);
  });

  const nul = "must not contain the NUL character";
  it.each([
    ["in a field", `{"refill":{"interval":"\\u0000"}}`, `refill.interval: ${nul}`],
    ["in an unknown field", `{"${KEY}":"\\u0000"}`, nul],
    ["under an unknown field", `{"${KEY}":{"amount":["\\u0000"]}}`, nul],
    ["in an unknown field inside", `{"refill":{"${KEY}":"\\u0000"}}`, `refill: ${nul}`],
    ["under a field that is no object", `{"apiId":{"${KEY}":"\\u0000"}}`, `apiId: ${nul}`],
    ["in meta", `{"meta":{"${KEY}":"\\u0000"}}`, `meta: ${nul}`],
    ["deep in meta", `{"meta":{"fields":[{"${KEY}":["\\u0000"]}]}}`, `meta: ${nul}`],
    ["in a name in meta", `{"meta":{"${KEY}\\u0000":1}}`, `meta: ${nul}`],
    ["twice in meta", `{"meta":{"${KEY}":1,"${KEY}":2}}`, "meta: has the same field twice"],
    ["twice on top", `{"${KEY}":1,"${KEY}":2}`, "has the same field twice"],
    ["twice under an unknown field", `{"${KEY}":{"a":1,"a":2}}`, "has the same field twice"],
    ["reserved under an unknown field", `{"${KEY}":{"__proto__":2}}`, "has a field with a reserved name"],
  ])("what the parser refuses %s, with the path as far as it is known", (_, body, message) => {
    const error = refuse(CreateKeyRequestSchema, body);
    expect(told(error)).toBe(message);
    expect(`${error.message}${JSON.stringify(error.violations)}`).not.toMatch(SENT);
  });

  const others = CreateKeyRequestSchema.fields.map(({ jsonName }) => jsonName).filter((name) => name !== "ipAllow");
  it.each(others)("null for %s", (name) => {
    const error = refuse(CreateKeyRequestSchema, JSON.stringify({ [name]: null }));
    expect(told(error)).toBe(`${name}: must not be null; send a value or leave the field out`);
  });

  it("null inside a message, and NaN as JSON.stringify prints it", () => {
    const error = refuse(CreateKeyRequestSchema, JSON.stringify({ ratelimit: { limit: Number.NaN, async: null } }));
    expect(error.violations).toEqual(
      ["ratelimit.limit", "ratelimit.async"].map((path) => ({ path, message: expect.stringContaining("null") })),
    );
  });

  it("enums by number, alien elements, and lists that are none", () => {
    const status = "status: must be one of UNKNOWN, SERVING, NOT_SERVING, SERVICE_UNKNOWN";
    expect(told(refuse(HealthCheckResponseSchema, '{"status":1}'))).toBe(status);
    expect(told(refuse(HealthCheckResponseSchema, `{"status":"${CANARY}"}`))).toBe(status);
    expect(told(refuse(ErrorDetailSchema, '{"violations":{}}'))).toBe("violations: must be an array");
    expect(refuse(ErrorDetailSchema, '{"violations":[{},null,{"path":1}]}').violations).toEqual([
      { path: "violations[1]", message: "must be an object" },
      { path: "violations[2].path", message: "must be a string" },
    ]);
  });

  it("what the parser refuses, with the path of the field", () => {
    const error = refuse(HealthCheckRequestSchema, `{"service":"${CANARY}\\u0000"}`);
    expect(error.violations).toEqual([{ path: "service", message: "must not contain the NUL character" }]);
  });

  it("all faults of a request at once", () => {
    const error = refuse(CreateKeyRequestSchema, '{"apiId":1,"limit":2,"refill":{"amount":"3","interval":4}}');
    expect(told(error)).toBe(
      `apiId: must be a string; ${unknownField}; ` +
        "refill.amount: must be a number; refill.interval: must be a string",
    );
  });

  it("more than ten faults by naming ten", () => {
    const { fields } = CreateKeyRequestSchema;
    const body = Object.fromEntries(fields.map(({ jsonName }) => [jsonName, [CANARY]]));
    const error = refuse(CreateKeyRequestSchema, JSON.stringify(body));
    expect(fields).toHaveLength(18);
    expect(error.violations.map(({ path }) => path)).toEqual(fields.slice(0, 10).map(({ jsonName }) => jsonName));
  });

  it("thousands of unknown names after looking at a few", () => {
    const names = Array.from({ length: 2_500 }, (_, i) => `"${KEY}${i}":0`);
    expectWithinDeadline(() => expect(told(refuse(CreateKeyRequestSchema, `{${names.join(",")}}`))).toBe(unknownField));
  });
});

it.each<[string, DescMessage, string]>([
  ["a map", HealthListResponseSchema, "grpc.health.v1.HealthListResponse.statuses"],
  ["a oneof", ServerReflectionRequestSchema, "grpc.reflection.v1.ServerReflectionRequest.file_by_filename"],
  ["a well-known type", OptionSchema, "google.protobuf.Option.value"],
])("a message with %s is a programming error on every request of its method", (_, desc, field) => {
  for (let request = 0; request < 2; request++) {
    expect(() => decode(desc, {})).toThrow(`unsupported field kind: field ${field} `);
  }
});

const text = fc.string({ unit: "grapheme" }).filter((value) => value !== "__proto__" && !value.includes("\0"));
const int32 = fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 });
/** Adding 0 turns -0, which JSON prints as 0, into 0. */
const double = fc.double({ min: -(2 ** 53) + 1, max: 2 ** 53 - 1, noNaN: true }).map((value) => value + 0);
const meta = fc.object({ key: text, values: [text, double, fc.boolean(), fc.constant(null)], maxDepth: 4 });
const createKeyRequest: fc.Arbitrary<MessageInitShape<typeof CreateKeyRequestSchema>> = fc.record(
  {
    apiId: text,
    // A longer one is refused before it is read.
    prefix: text.filter(({ length }) => length <= 32),
    byteLength: int32,
    ownerId: text,
    remaining: int32,
    refill: fc.record({ interval: text, amount: int32, carryOver: fc.boolean() }),
    ratelimit: fc.record(
      { async: fc.boolean(), limit: int32, duration: fc.nat(2 ** 32 - 1) },
      { requiredKeys: ["limit"] },
    ),
    name: text,
    meta: meta as fc.Arbitrary<JsonObject>,
    expires: double,
    enabled: fc.boolean(),
  },
  { requiredKeys: [] },
);

function decode<Desc extends DescMessage>(desc: Desc, body: unknown) {
  return decodeJson(desc, Buffer.from(JSON.stringify(body)));
}

function refuse(desc: DescMessage, body: string): InvalidRequest {
  return refusalOf(() => decodeJson(desc, Buffer.from(body)));
}
