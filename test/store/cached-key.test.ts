import { describe, expect, it } from "vitest";
import { toCachedKey } from "../../gen/resources/store/cached-key.ts";
import { Interner } from "../../src/store/interner.ts";
import { foundAs, sampleKey } from "../contract/sample-keys.ts";
import { TestClock } from "../support/test-clock.ts";

const clock = new TestClock();
// Spelled like the numbers of a range.
const permissions = ["0", "0", "65535", "16909060", "128"];
const ipAllow = ["1.2.3.4"];
const rateLimits = [{ name: "day", rule: { mode: "strict", limit: 5, durationMs: 1000 } }] as const;

describe("a cached key", () => {
  it.each([{}, { permissions }, { ipAllow }, { permissions, ipAllow }, { rateLimits }, { costMax: 5 }])(
    "has %j of the key",
    (given) => {
      const key = foundAs(sampleKey(clock, given));
      expect({ ...toCachedKey(key, new Interner()) }).toEqual(key);
    },
  );

  it("has the end of its secret, too", () => {
    const key = { ...foundAs(sampleKey(clock, { permissions })), secretExpiresAtMs: 7 };
    expect({ ...toCachedKey(key, new Interner()) }).toEqual(key);
  });

  it("shares its lists with others that have the same ones, and with no others", () => {
    const interner = new Interner();
    const [one, other] = [0, 1].map(() => toCachedKey(foundAs(sampleKey(clock, lists())), interner));
    expect(one?.permissions).toBe(other?.permissions);
    expect(one?.ipAllow).toBe(other?.ipAllow);
    expect(one?.permissions?.join()).toBe(one?.ipAllow?.join());
    expect(one?.permissions).not.toBe(one?.ipAllow);
    const third = toCachedKey(foundAs(sampleKey(clock, { permissions: ["0"], ipAllow: ["1.2.3.5"] })), interner);
    expect(third).toMatchObject({ permissions: ["0"], ipAllow: [0, 0, 65_535, 16_909_061, 128] });
  });
});

function lists() {
  return { permissions: [...permissions], ipAllow: [...ipAllow] };
}
