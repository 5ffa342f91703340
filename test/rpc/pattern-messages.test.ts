import { type DescMessage, getOption, hasOption } from "@bufbuild/protobuf";
import { type FieldRules, field as fieldRules } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { describe, expect, it } from "vitest";
import { services } from "../../gen/latchkey/v1/services.ts";
import { patternMessages, phrasePattern } from "../../src/rpc/pattern-messages.ts";

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

  it("hold no pattern either that has no sentence yet", () => {
    expect(phrasePattern("does not match regex pattern `^a$`")).toBe("has characters that are not allowed");
  });
});
