import fc from "fast-check";
import { expect, it } from "vitest";
import { endOfPrefix } from "../../src/domain/prefix-range.ts";

const bytes = (text: string) => Buffer.from(text);
const isInRange = (text: string, prefix: string) =>
  Buffer.compare(bytes(text), bytes(prefix)) >= 0 && Buffer.compare(bytes(text), bytes(endOfPrefix(prefix))) < 0;

const edges = fc.constantFrom(
  "\u0001",
  "a",
  "b",
  "\u007f",
  "\u0080",
  "\ud7ff",
  "\ue000",
  "\uffff",
  "\u{10000}",
  "\u{10ffff}",
);
const anyText = fc.oneof(fc.string({ unit: edges, maxLength: 4 }), fc.string({ unit: "binary", maxLength: 4 }));

it("the texts that begin with a prefix are those from it to its end, byte by byte", () => {
  fc.assert(
    fc.property(anyText, anyText, (prefix, text) => {
      fc.pre(prefix !== "");
      expect(isInRange(text, prefix)).toBe(text.startsWith(prefix));
      expect(isInRange(prefix + text, prefix)).toBe(true);
    }),
    { numRuns: 2000 },
  );
});
