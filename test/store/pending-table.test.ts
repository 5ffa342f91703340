import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Pending, PendingTable } from "../../src/store/pending-table.ts";

interface Entry extends Pending<Entry> {
  readonly number: number;
}

describe("PendingTable", () => {
  it("finds what a list would find, the latest first, whatever was added and removed", () => {
    // The first three share a bucket.
    const digest = fc.constantFrom("AAa", "AAb", "AAc", "zz", "", "not a digest");
    const step = fc.oneof(fc.record({ add: digest }), fc.record({ remove: fc.nat(20) }));
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const table = new PendingTable<Entry>();
        const added: Entry[] = [];
        let listed: Entry[] = [];
        for (const each of steps) {
          if ("add" in each) {
            const entry: Entry = { digest: each.add, next: undefined, number: added.length };
            added.push(entry);
            listed.unshift(entry);
            table.add(entry);
          } else {
            // It may have been removed before.
            const entry = added[each.remove];
            if (entry !== undefined) table.remove(entry);
            listed = listed.filter((other) => other !== entry);
          }
          for (const name of ["AAa", "AAb", "AAc", "zz", "", "not a digest", "unknown"]) {
            const found: number[] = [];
            for (let at = table.latest(name); at !== undefined; at = table.before(at)) found.push(at.number);
            expect(found).toEqual(listed.filter((entry) => entry.digest === name).map((entry) => entry.number));
          }
        }
        const visited: number[] = [];
        table.forEach((entry) => void visited.push(entry.number));
        expect(visited.sort()).toEqual(listed.map((entry) => entry.number).sort());
      }),
      { numRuns: 300 },
    );
  });

  it("lets go of what is removed, so that nothing removed holds what came after it", () => {
    const table = new PendingTable<Entry>();
    const [first, second] = [0, 1].map((number) => ({ digest: "AA", next: undefined, number })) as [Entry, Entry];
    table.add(first);
    table.add(second);
    table.remove(second);
    expect(second.next).toBeUndefined();
  });
});
