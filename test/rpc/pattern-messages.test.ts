import { create, type DescMessage, getOption, hasOption } from "@bufbuild/protobuf";
import { type FieldRules, field as fieldRules } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { describe, expect, it } from "vitest";
import { CreateKeyRequestSchema } from "../../gen/latchkey/v1/keys_pb.js";
import { services } from "../../gen/latchkey/v1/services.ts";
import { patternMessages, phrasePattern, validated } from "../../src/rpc/validate.ts";

/** The patterns of all rules of a message and of what is inside it. */
function patternsIn(message: DescMessage, seen = new Set<DescMessage>()): string[] {
  if (seen.has(message)) return [];
  seen.add(message);
  return message.fields.flatMap((field) => [
    ...(hasOption(field, fieldRules) ? patternsOf(getOption(field, fieldRules)) : []),
    ...(field.message === undefined ? [] : patternsIn(field.message, seen)),
  ]);
}

function patternsOf({ type }: FieldRules): string[] {
  if (type.case === "string") return type.value.pattern === "" ? [] : [type.value.pattern];
  return type.case === "repeated" && type.value.items !== undefined ? patternsOf(type.value.items) : [];
}

describe("messages about patterns", () => {
  const inputs = services.flatMap((service) => service.methods.map(({ input }) => input));
  const patterns = [...new Set(inputs.flatMap((input) => patternsIn(input)))];

  it("are sentences, for every pattern of every method", () => {
    expect(patterns.length).toBeGreaterThan(3);
    expect(Object.keys(patternMessages).sort()).toEqual(patterns.toSorted());
    for (const pattern of patterns) {
      const message = phrasePattern(`does not match regex pattern \`${pattern}\``);
      expect(message).toBe(patternMessages[pattern]);
      expect(message).not.toMatch(/regex|[\^$[\]{}+?]/);
    }
  });

  it.each([
    ["ipAllow[0]: must be an IP address or a CIDR range", { ipAllow: ["300.1.1.1"] }],
    ["ipAllow[0]: must be an IP address or a CIDR range", { ipAllow: ["fe80::1%eth0"] }],
    ["ipAllow[0]: must be a range without bits after its prefix, such as 10.0.0.0/8", { ipAllow: ["10.0.0.1/8"] }],
    ["refill.interval: must be daily or monthly", { refill: { interval: "weekly", amount: 5 } }],
    [/^ratelimit\.duration: must be .*1000.* \(milliseconds\)$/, { ratelimit: { limit: 5, duration: 60 } }],
  ])("say what is wrong: %s", (message, fields) => {
    const request = create(CreateKeyRequestSchema, { apiId: "api", ...fields });
    expect(() => validated(CreateKeyRequestSchema, request)).toThrow(message);
  });

  it("hold no pattern either that has no sentence yet", () => {
    expect(phrasePattern("does not match regex pattern `^a$`")).toBe("has characters that are not allowed");
  });
});
