import { describe, expect, it } from "vitest";
import type { RateLimit } from "../../src/domain/rate-limit.ts";
import type { WindowReport } from "../../src/domain/shared-window.ts";
import { freeStandingSubject } from "../../src/domain/subject.ts";
import type { SavedWindow } from "../../src/domain/window-rows.ts";
import { WindowTable } from "../../src/domain/window-table.ts";

const rule: RateLimit = { mode: "local", limit: 3, durationMs: 1000 };

/** A full table: k0 opened its window first, the others each 100 ms later. */
function fullTable(slotsMax: number): WindowTable {
  const table = new WindowTable(slotsMax);
  for (let i = 0; i < slotsMax; i++) table.rows.take(table.slotOf(`k${i}`, `api ${i}`) as number, rule, i * 100);
  return table;
}

describe("a full table", () => {
  it("has no place for a new key and goes on serving those that it knows", () => {
    const table = fullTable(3);
    table.sweep(999, 3);
    expect(table.slotOf("new")).toBeUndefined();
    for (const key of ["k0", "k1", "k2"]) {
      expect(table.rows.take(table.slotOf(key) as number, rule, 999)).toBeGreaterThan(0);
      expect(table.rows.remaining(table.slotOf(key) as number, 3, 999)).toBe(1);
    }
    expect(table.size).toBe(3);
  });

  it("frees the place of a window when it is over, and of no other", () => {
    const table = fullTable(3);
    table.sweep(1100, 3);
    expect(["k0", "k1", "k2"].map((key) => table.find(key) !== undefined)).toEqual([false, false, true]);
    expect(table.size).toBe(1);
    const slots = [table.slotOf("a"), table.slotOf("b")];
    expect(slots.sort()).toEqual([0, 1]);
    expect(table.slotOf("c")).toBeUndefined();
  });

  it("keeps the place of a key whose shared window lasts longer than its own", () => {
    const table = fullTable(1);
    const report = table.rows.report(0, "a", 500) as WindowReport;
    table.rows.learn(0, report, { gen: 9, endsInMs: 800, others: 0, replicas: 2, counted: true }, 500, 500);
    table.sweep(1299, 1);
    expect(table.size).toBe(1);
    table.sweep(1300, 1);
    expect(table.size).toBe(0);
  });

  it("gives a new key nothing of the key that had its place", () => {
    const table = fullTable(1);
    table.rows.learn(0, table.rows.report(0, "a", 1) as WindowReport, news({ others: 3 }), 1, 1);
    table.sweep(1000, 1);
    const slot = table.slotOf("new") as number;
    expect(table.rows.remaining(slot, 3, 1000)).toBe(3);
    expect(table.rows.endsMs(slot, rule, 1000)).toBe(2000);
    table.rows.take(slot, rule, 1000);
    expect(table.rows.report(slot, "a", 1000)).toMatchObject({ previousGen: 0, count: 0 });
  });
});

describe("free-standing subjects", () => {
  const free = (i: number) => freeStandingSubject({ namespace: "n", identifier: `${i}`, apiId: undefined }, rule);

  it("have places of their own: neither they nor keys can take those of the others", () => {
    const table = new WindowTable(2, { freeStandingMax: 3 });
    const claim = (subject: string) => table.rows.take(table.slotOf(subject) ?? -1, rule, 0) > 0;
    expect([free(1), free(2), free(3)].map(claim)).toEqual([true, true, true]);
    expect(table.slotOf(free(4))).toBeUndefined();
    expect(["k1", "k2"].map(claim)).toEqual([true, true]);
    expect(table.slotOf("k3")).toBeUndefined();
    expect(table.slotOf("key_1/f/")).toBeUndefined();
    table.sweep(1000, 5);
    expect(table.size).toBe(0);
    expect(
      ["k1", "k2", "k3", free(1), free(2), free(3), free(4)].map((each) => table.slotOf(each) !== undefined),
    ).toEqual([...[true, true, false], ...[true, true, true, false]]);
  });
});

describe("windows of several APIs", () => {
  /** A table of 20 that the API has filled up to 90 %. */
  function filledBy(apiId: string): WindowTable {
    const table = new WindowTable(20, { freeStandingMax: 20 });
    for (let i = 0; i < 20; i++) {
      const slot = table.slotOf(`${apiId} ${i}`, apiId);
      if (slot !== undefined) table.rows.take(slot, rule, 0);
    }
    expect(table.size).toBe(18);
    return table;
  }

  it("leave the last tenth of a table to APIs that hold little of it, and each goes on in those it has", () => {
    const table = filledBy("big");
    expect(table.slotOf("big another", "big")).toBeUndefined();
    expect(table.slotOf("big 0", "big")).toBe(0);
    expect([1, 2, 3].map((i) => table.slotOf(`small ${i}`, "small"))).toEqual([18, 19, undefined]);
    table.sweep(1000, 20);
    expect(table.slotOf("big another", "big")).toBeDefined();
  });

  it("count apart from free-standing ones", () => {
    const table = filledBy("big");
    const identifier = (i: number) =>
      freeStandingSubject({ namespace: "n", identifier: `${i}`, apiId: "big" }, { mode: "local", durationMs: 1000 });
    const free = Array.from({ length: 20 }, (_, i) => table.slotOf(identifier(i), "big"));
    expect(free.map((slot) => slot !== undefined)).toEqual([...Array(18).fill(true), false, false]);
    expect(table.slotOf(identifier(20), undefined)).toBeDefined();
  });

  it("are restored for their API, all of them in any order, and are held to its share afterwards", () => {
    const table = filledBy("big");
    table.rows.take(table.slotOf("small", "small") as number, rule, 0);
    const restored = new WindowTable(20, { freeStandingMax: 20 });
    for (const saved of [...table.openWindows(1)].reverse()) expect(restored.restore(saved, 1)).toBe(true);
    expect(restored.size).toBe(19);
    expect(restored.slotOf("big another", "big")).toBeUndefined();
    expect(restored.slotOf("small another", "small")).toBeDefined();
  });

  it("are restored without their API from before it was saved, and count for none", () => {
    const restored = new WindowTable(20);
    for (let i = 0; i < 18; i++) restored.restore({ ...open, subject: `k${i}` }, 0);
    expect(["a", "b"].map((apiId) => restored.slotOf(`of ${apiId}`, apiId) !== undefined)).toEqual([true, true]);
  });
});

describe("sweeping", () => {
  it("checks so many slots at a time, and in turn all of them", () => {
    const table = fullTable(10);
    for (const size of [6, 2, 0, 0]) {
      table.sweep(10_000, 4);
      expect(table.size).toBe(size);
    }
  });

  it.each([0, 1, 1000])("does nothing to an empty table, checking %i slots", (looks) => {
    const table = new WindowTable(4);
    table.sweep(0, looks);
    expect(table.size).toBe(0);
  });
});

describe("saved windows", () => {
  it("are those that are open, and go on where they were on another clock", () => {
    const table = fullTable(2);
    table.rows.take(1, rule, 1050);
    const saved = [...table.openWindows(1050)];
    expect(saved.map(({ subject: keyId }) => keyId)).toEqual(["k1"]);
    const restored = restore(saved, 7);
    expect(restored.rows.remaining(0, 3, 7)).toBe(1);
    expect(restored.rows.endsMs(0, rule, 7)).toBe(57);
    expect(restored.rows.remaining(0, 3, 57)).toBe(3);
  });

  it("hold the own window to its end although the shared one ends sooner", () => {
    const restored = restore([{ ...open, mine: 3, mineEndsInMs: 500, share: 0, shareEndsInMs: 20 }], 0);
    expect([0, 20, 499, 500].map((nowMs) => restored.rows.remaining(0, 3, nowMs))).toEqual([0, 0, 0, 3]);
  });

  it("hold the others' count and the name of the shared window", () => {
    const restored = restore([{ ...open, share: 1, others: 2, gen: 42 }], 0);
    expect(restored.rows.remaining(0, 3, 1)).toBe(0);
    expect(restored.rows.report(0, "a", 1)).toMatchObject({ gen: 42, count: 1, endsInMs: 899 });
  });

  it("never reopen: what is over by the time it is restored lets the whole limit pass", () => {
    const restored = restore([{ ...open, mine: 3, mineEndsInMs: 0, share: 3, shareEndsInMs: -5 }], 0);
    expect(restored.rows.remaining(0, 3, 0)).toBe(3);
  });

  it("tell the others that the window before is over when the next one opens", () => {
    const restored = restore([{ ...open, gen: 42, shareEndsInMs: -5 }], 0);
    restored.rows.take(0, rule, 0);
    expect(restored.rows.report(0, "a", 0)).toMatchObject({ previousGen: 42, count: 0 });
  });

  it("are refused when there is no place for them", () => {
    const table = fullTable(1);
    expect(table.restore({ ...open, subject: "another" }, 0)).toBe(false);
    expect(table.find("k0")).toBe(0);
  });
});

const open: SavedWindow = {
  subject: "k",
  mine: 1,
  mineEndsInMs: 900,
  share: 1,
  shareEndsInMs: 900,
  gen: 5,
  others: 0,
  durationMs: 1000,
};

function restore(saved: Iterable<SavedWindow>, nowMs: number): WindowTable {
  const table = new WindowTable(4);
  for (const window of saved) expect(table.restore(window, nowMs)).toBe(true);
  return table;
}

function news(changes: object) {
  return { gen: 1, endsInMs: 999, others: 0, replicas: 2, counted: true, ...changes };
}
