import type { Question } from "../../src/core/wire.ts";

const chargeOf = (subject: string, run: { own?: string; cost?: number; count?: number }): Question => ({
  case: "charge",
  value: { subject, cost: 1, count: 1, ...run },
});

/** A charge of single uses. */
export const charge = (subject: string, count: number): Question => chargeOf(subject, { count });

/** What no edge of ours sends. */
export const impossibleCharges: [string, Question][] = [
  ["a charge of nothing", charge("key", 0)],
  ["a charge of less than nothing", charge("key", -1)],
  ["the smallest charge", charge("key", -2_147_483_648)],
  ["a charge of more than there are callers", charge("key", 1_000_001)],
  ["the greatest charge", charge("key", 2_147_483_647)],
  ["a charge of no key", charge("", 1)],
  ["a charge of a key with a zero character", charge("ke\0y", 1)],
  ["a charge of a key with too long an id", charge("k".repeat(258), 1)],
  ["a cost of nothing", chargeOf("key", { cost: 0 })],
  ["a cost of less than nothing", chargeOf("key", { cost: -1 })],
  ["a counter twice", chargeOf("key", { own: "key" })],
  ["a second counter with a zero character", chargeOf("c/owner", { own: "ke\0y" })],
  ["a second counter with too long a name", chargeOf("c/owner", { own: "k".repeat(258) })],
];

export const possibleCharges: [string, Question][] = [
  ["a charge", charge("key", 1_000_000)],
  ["the greatest costs", chargeOf("key", { cost: 2 ** 31 - 1, count: 1_000_000 })],
  ["two counters with long names", chargeOf(`c/${"😀".repeat(255)}`, { own: "k".repeat(257) })],
];
