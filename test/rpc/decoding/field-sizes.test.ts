import { create, type DescMessage, type JsonObject, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { describe, expect, it } from "vitest";
import {
  CreateKeyRequestSchema,
  UpdateKeyRequestSchema,
  VerifyKeyRequestSchema,
} from "../../../gen/latchkey/v1/keys_pb.js";
import { services } from "../../../gen/latchkey/v1/services.ts";
import { decodeBinary } from "../../../src/rpc/decoding/decode-binary.ts";
import { decodeJson } from "../../../src/rpc/decoding/decode-json.ts";
import { sizesOf } from "../../../src/rpc/decoding/field-sizes.ts";
import { InvalidRequest } from "../../../src/rpc/invalid-request.ts";
import { validated } from "../../../src/rpc/validate.ts";
import { compileWidgets } from "../../support/widgets.ts";
import { bytes } from "./build-wire.ts";
import { refusalOf, told } from "./refusal.ts";

const widget = compileWidgets().messageOf("GetWidgetRequest");

/** The lists of a message and of those in it, which are no free JSON. */
function listsOf(desc: DescMessage): string[] {
  return desc.fields.flatMap((field) => {
    const unbounded = field.fieldKind === "list" && sizesOf(field).itemsMax === Number.POSITIVE_INFINITY;
    const inside = field.message && field.message.typeName !== "google.protobuf.Struct" ? listsOf(field.message) : [];
    return [...(unbounded ? [`${field}`] : []), ...inside];
  });
}

describe("a list of a request", () => {
  it("has a bound, whatever the method", () => {
    const inputs = services.flatMap(({ methods }) => methods.map(({ input }) => input));
    expect(inputs.flatMap(listsOf)).toEqual([]);
    expect(inputs.length).toBeGreaterThan(20);
  });

  it("is refused in JSON before its elements are read", () => {
    const refusal = (body: JsonObject) =>
      refusalOf(() => decodeJson(VerifyKeyRequestSchema, Buffer.from(JSON.stringify(body)))).message;
    // Each element would be refused by itself.
    expect(refusal({ key: "a", ratelimits: Array(17).fill(7) })).toBe(
      "ratelimits: must contain no more than 16 item(s)",
    );
    expect(refusal({ key: "a", ratelimits: Array(16).fill(7) })).toContain("ratelimits[0]: must be an object");
  });

  it("is refused in binary with the first element too many", () => {
    const refusal = (count: number) =>
      refusalOf(() => {
        const broken = [...Array(count - 1).fill(bytes(7)), bytes(7, Buffer.from([0x0f]))];
        return decodeBinary(VerifyKeyRequestSchema, Buffer.concat(broken));
      }).message;
    expect(refusal(17)).toBe("ratelimits: must contain no more than 16 item(s)");
    expect(refusal(16)).toBe("the request is not a valid protobuf message");
  });

  it("of numbers is counted wherever they are packed", () => {
    const packed = (count: number) => bytes(8, Buffer.alloc(count));
    const one = new BinaryWriter().tag(8, WireType.Varint).uint32(0).finish();
    const sizes = (...parts: Uint8Array[]) => decodeBinary(widget, Buffer.concat(parts));
    expect(sizes(packed(60), packed(39), one)).toMatchObject({ sizes: Array(100).fill(0) });
    for (const parts of [[packed(101)], [packed(60), packed(41)], [packed(100), one]])
      expect(refusalOf(() => sizes(...parts)).message).toBe("sizes: must contain no more than 100 item(s)");
  });

  it("of the paths of a mask has a bound too", () => {
    const init = { keyId: "key_1", updateMask: { paths: Array(101).fill("name") } };
    const sent = create(UpdateKeyRequestSchema, init as MessageInitShape<typeof UpdateKeyRequestSchema>);
    const { message } = refusalOf(() => decodeBinary(UpdateKeyRequestSchema, toBinary(UpdateKeyRequestSchema, sent)));
    expect(message).toBe("updateMask.paths: must contain no more than 100 item(s)");
  });
});

describe("a text of a request", () => {
  it("that is far too long is refused before its pattern is tried", () => {
    const refusal = (length: number) => {
      const name = "/".repeat(length);
      const body = { apiId: "a", ratelimits: [{ name, limit: 1, duration: 1000 }] };
      const sent = toBinary(CreateKeyRequestSchema, create(CreateKeyRequestSchema, body));
      return [
        refusalOf(() => validated(CreateKeyRequestSchema, decodeBinary(CreateKeyRequestSchema, sent))).message,
        refusalOf(() => {
          const json = Buffer.from(JSON.stringify(body));
          return validated(CreateKeyRequestSchema, decodeJson(CreateKeyRequestSchema, json));
        }).message,
      ];
    };
    const tooLong = "ratelimits[0].name: must be at most 64 characters";
    expect(refusal(64 * 4 + 1)).toEqual([tooLong, tooLong]);
    for (const message of refusal(65)) expect(message).toContain(`${tooLong}; ratelimits[0].name: `);
  });
});

describe("what is wrong with a request", () => {
  const violations = (count: number, length: number) =>
    Array.from({ length: count }, (_, i) => ({ path: `a[${i}]`, message: "x".repeat(length) }));

  it("is told up to ten times, and a kilobyte", () => {
    expect(told(new InvalidRequest(violations(3, 1)))).toBe("a[0]: x; a[1]: x; a[2]: x");
    expect(new InvalidRequest([...violations(2, 1), ...violations(2, 1)]).violations, "once").toHaveLength(2);
    expect(new InvalidRequest(violations(5000, 1)).violations).toHaveLength(10);
    const long = new InvalidRequest(violations(10, 300));
    expect(long.violations).toHaveLength(3);
    expect(long.message.length).toBeLessThan(1_000);
    expect(new InvalidRequest(violations(2, 3000)).violations, "one at least").toHaveLength(1);
  });
});
