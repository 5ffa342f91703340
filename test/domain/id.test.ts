import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { earliestId, formatId, idRandomLength } from "../../src/domain/id.ts";

const anyMoment = fc.integer({ min: 0, max: 2 ** 48 - 1 });
const anyRandom = fc.uint8Array({ minLength: idRandomLength, maxLength: idRandomLength });

describe("formatId", () => {
  it("gives the kind, an underscore and 22 base62 characters, at any time", () => {
    fc.assert(
      fc.property(fc.constantFrom("key" as const, "req" as const), anyMoment, anyRandom, (kind, nowMs, random) => {
        expect(formatId(kind, nowMs, random)).toMatch(new RegExp(`^${kind}_[0-9A-Za-z]{22}$`));
      }),
    );
  });

  it("sorts by the millisecond of creation, with any random bytes", () => {
    const two = fc.tuple(anyMoment, anyMoment).filter(([a, b]) => a !== b);
    fc.assert(
      fc.property(two, anyRandom, anyRandom, ([a, b], randomA, randomB) => {
        expect(formatId("key", a, randomA) < formatId("key", b, randomB)).toBe(a < b);
      }),
    );
  });

  it("sorts a millisecond before the next even with the highest random bytes against the lowest", () => {
    const nowMs = Date.UTC(2026, 0, 15);
    const highest = new Uint8Array(idRandomLength).fill(255);
    const lowest = new Uint8Array(idRandomLength);
    expect(formatId("key", nowMs, highest) < formatId("key", nowMs + 1, lowest)).toBe(true);
  });

  it("differs whenever any of its 80 random bits does", () => {
    const ids = new Set([formatId("key", 1, new Uint8Array(idRandomLength))]);
    for (let bit = 0; bit < 80; bit++) {
      const random = new Uint8Array(idRandomLength);
      random[bit >> 3] = 1 << (bit & 7);
      ids.add(formatId("key", 1, random));
    }
    expect(ids.size).toBe(81);
  });
});

it("earliestId is behind all ids of before a moment, and behind none of then or later", () => {
  fc.assert(
    fc.property(anyMoment, anyMoment, anyRandom, (atMs, otherMs, random) => {
      expect(formatId("evt", otherMs, random) < earliestId("evt", atMs)).toBe(otherMs < atMs);
      expect(formatId("evt", atMs, random) < earliestId("evt", atMs)).toBe(false);
    }),
  );
});
