import { describe, expect, it } from "vitest";
import { AskAge } from "../../src/core/serve/ask-age.ts";
import { InvalidMessage } from "../../src/core/wire.ts";

const quick = { seenTimeMs: 10_000, seenAgeMs: 30 };

describe("the age of an ask", () => {
  it("is told by the coordinator's own time: too old is a second more than the lowest round trip", () => {
    const age = new AskAge(1000);
    // A round trip of 80 ms.
    expect(age.expiresAtMs(quick, 10_110)).toBe(11_110);
    // One that took 500 ms more has 500 ms left, and one that took 1 200 ms more is too old on arrival.
    expect(age.expiresAtMs({ seenTimeMs: 20_000, seenAgeMs: 0 }, 20_580)).toBe(21_080);
    expect(age.expiresAtMs({ seenTimeMs: 30_000, seenAgeMs: 40 }, 31_320)).toBe(31_120);
  });

  it("does not count the time between the coordinator's message and the ask", () => {
    const age = new AskAge(1000);
    age.expiresAtMs(quick, 10_110);
    expect(age.expiresAtMs({ seenTimeMs: 10_000, seenAgeMs: 3000 }, 13_080)).toBe(14_080);
  });

  it("is any age for a client that tells no time, and an error for an impossible one", () => {
    const age = new AskAge(1000);
    expect(age.expiresAtMs({ seenTimeMs: 0, seenAgeMs: 0 }, 5000)).toBe(Number.POSITIVE_INFINITY);
    for (const seen of [
      { seenTimeMs: Number.NaN, seenAgeMs: 0 },
      { seenTimeMs: 1, seenAgeMs: -1 },
      { seenTimeMs: 1, seenAgeMs: Number.NaN },
      { seenTimeMs: Number.POSITIVE_INFINITY, seenAgeMs: 0 },
    ])
      expect(() => age.expiresAtMs(seen, 5000)).toThrow(InvalidMessage);
  });
});
