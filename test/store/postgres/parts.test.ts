import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { partsOf } from "../../../src/store/postgres/parts.ts";

const anySubject = fc.nat(12).map((n) => `s${n}`);
const anyItem = fc
  .record({ subject: anySubject, shared: fc.option(anySubject, { nil: undefined }) })
  .map(({ subject, shared }) => (shared === undefined || shared === subject ? { subject } : { subject, shared }));

describe("the parts of a batch", () => {
  it("have no subject in common, connect what an item names, and number their subjects from 1", () => {
    fc.assert(
      fc.property(fc.array(anyItem, { maxLength: 20 }), (items) => {
        const { subjects, parts, slots, positions } = partsOf(items);
        const named = items.flatMap(({ subject, shared }) => (shared === undefined ? [subject] : [subject, shared]));
        expect([...subjects].sort()).toEqual([...new Set(named)].sort());
        subjects.forEach((subject, i) => {
          expect(positions.get(subject)).toBe(i);
        });
        const partOf = (subject: string) => parts[positions.get(subject) as number];
        for (const { subject, shared = subject } of items) expect(partOf(subject)).toBe(partOf(shared));
        for (const part of new Set(parts)) {
          const own = slots.filter((_, i) => parts[i] === part);
          expect(own).toEqual(own.map((_, i) => i + 1));
        }
        // No larger than they must be: otherwise charges would be counted one by one that have nothing in common.
        expect(new Set(parts).size).toBe(reachable(items).size);
      }),
    );
  });
});

/** The parts, found by walking: one representative each. */
function reachable(items: readonly { subject: string; shared?: string }[]): Set<string> {
  const found = new Set<string>();
  const seen = new Set<string>();
  const walk = (subject: string): void => {
    if (seen.has(subject)) return;
    seen.add(subject);
    for (const item of items) {
      if (item.subject === subject && item.shared !== undefined) walk(item.shared);
      if (item.shared === subject) walk(item.subject);
    }
  };
  for (const { subject } of items) {
    if (!seen.has(subject)) found.add(subject);
    walk(subject);
  }
  return found;
}
