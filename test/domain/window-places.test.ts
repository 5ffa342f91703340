import { describe, expect, it } from "vitest";
import { freeStandingSubject } from "../../src/domain/subject.ts";
import { type ApiShare, Places, WindowPlaces } from "../../src/domain/window-places.ts";
import { SeededRandom } from "./seeded-random.ts";

/** How many of so many places the API gets, one after the other. */
function takeUpTo(places: Places, apiId: string | undefined, count: number): number {
  let taken = 0;
  while (taken < count && places.take(apiId) !== undefined) taken++;
  return taken;
}

describe("places of a table", () => {
  it.each([
    // All, the first API alone, then the second, then the third.
    [1000, 900, 100, 0],
    [100, 90, 10, 0],
    [10, 9, 1, 0],
    // Nine tenths of 15 are 13.5 and a tenth is 1.5: an API that holds 1 gets another.
    [15, 14, 1, 0],
    [25, 23, 2, 0],
    // A table this small has no tenth to leave.
    [9, 9, 0, 0],
    [1, 1, 0, 0],
    [0, 0, 0, 0],
  ])("of %i: one API alone gets %i, the next one %i of the rest", (max, first, second, third) => {
    const places = new Places(max);
    expect(["a", "b", "c"].map((apiId) => takeUpTo(places, apiId, max + 1))).toEqual([first, second, third]);
  });

  it("are for everybody until the table is 90 % full, and then for APIs that hold less than a tenth", () => {
    const places = new Places(100);
    expect(takeUpTo(places, "a", 80)).toBe(80);
    expect(takeUpTo(places, "b", 9)).toBe(9);
    expect(takeUpTo(places, "a", 9)).toBe(1);
    expect(takeUpTo(places, "b", 9)).toBe(1);
    expect(takeUpTo(places, "c", 9)).toBe(9);
    expect(takeUpTo(places, "d", 1)).toBe(0);
  });

  it("count those that name no API as one API's", () => {
    const places = new Places(100);
    expect(takeUpTo(places, undefined, 100)).toBe(90);
    expect(takeUpTo(places, "a", 1)).toBe(1);
  });

  it("are restored while there are any, whatever the API holds", () => {
    const places = new Places(10);
    expect(Array.from({ length: 11 }, () => places.restore("a") !== undefined)).toEqual([
      ...Array(10).fill(true),
      false,
    ]);
  });

  it("come back one by one, and count for their API until then", () => {
    const places = new Places(10);
    const taken = Array.from({ length: 9 }, () => places.take("a") as ApiShare);
    expect(places.take("a")).toBeUndefined();
    places.release(taken[0] as ApiShare);
    expect(places.take("a")).toMatchObject({ apiId: "a", held: 9 });
    for (const share of taken) places.release(share);
    expect(takeUpTo(places, "b", 10)).toBe(9);
  });

  it("agree with a plain count of who holds what, whatever is taken and given back (seeds 1 to 50)", () => {
    for (let seed = 1; seed <= 50; seed++) {
      const random = new SeededRandom(seed);
      const max = random.integer(1, 40);
      const places = new Places(max);
      const held: ApiShare[] = [];
      for (let step = 0; step < 500; step++) {
        if (held.length > 0 && random.chance(0.4)) {
          const [share] = held.splice(random.integer(0, held.length - 1), 1);
          places.release(share as ApiShare);
          continue;
        }
        const apiId = random.pick(["a", "a", "a", "b", "c", undefined]);
        const own = held.filter((share) => share.apiId === apiId).length;
        const isFree = held.length < max && (held.length / max < 0.9 || own / max < 0.1);
        const share = places.take(apiId);
        expect([seed, step, share !== undefined]).toEqual([seed, step, isFree]);
        if (share !== undefined) held.push(share);
      }
    }
  });
});

describe("places of a table of windows", () => {
  it("are other ones for free-standing subjects, with shares of their own", () => {
    const free = freeStandingSubject(
      { namespace: "n", identifier: "i", apiId: "a" },
      { mode: "local", durationMs: 1000 },
    );
    const places = new WindowPlaces(10, 20);
    expect(takeUpTo(places.for(free), "a", 20)).toBe(18);
    expect(takeUpTo(places.for("key_1"), "a", 20)).toBe(9);
    expect(places.for("key_1/f/")).toBe(places.for("o/name/owner"));
  });
});
