import type { Question } from "../../src/core/wire.ts";

type Make = (fields: Fields) => Question;

/** By how a key is created and how it is changed. */
export function impossibleOfLists(create: Make, update: Make): Record<string, [string, Question][]> {
  return {
    "lists of a new key": strangeLists.map(([name, fields]) => [name, create(fields)]),
    "a change of lists": strangeLists.map(([name, fields]) => [name, update(fields)]),
  };
}

const rule = { mode: "strict", limit: 1, durationMs: 1000 };

/** Fields of a key, with lists that no edge of ours sends. */
const strangeLists: [string, Fields][] = [
  ["no permissions at all", { permissions: [] }],
  ["permissions that are a text", { permissions: "docs.read" }],
  ["a permission that is a number", { permissions: [1] }],
  ["too many permissions", { permissions: Array.from({ length: 101 }, () => "a") }],
  ...["", "a b", "a\0", "*.a", "docs*", "é", "x".repeat(129), "a\n"].map((one): [string, Fields] => [
    `the permission ${JSON.stringify(one)}`,
    { permissions: ["a", one] },
  ]),
  ["no addresses at all", { ipAllow: [] }],
  ["addresses that are a text", { ipAllow: "10.0.0.0/8" }],
  ["an address that is a number", { ipAllow: [1] }],
  ["too many addresses", { ipAllow: Array.from({ length: 51 }, () => "::1") }],
  ...["", "localhost", "10.0.0.1/8", "10.0.0.0/33", "::1%eth0", "1.2.3.4\n"].map((one): [string, Fields] => [
    `the address ${JSON.stringify(one)}`,
    { ipAllow: ["::1", one] },
  ]),
  ["no limits at all", { rateLimits: [] }],
  ["limits that are an object", { rateLimits: { name: "a", rule } }],
  ["a limit that is null", { rateLimits: [null] }],
  ["a limit without a rule", { rateLimits: [{ name: "a" }] }],
  ["a limit whose rule is null", { rateLimits: [{ name: "a", rule: null }] }],
  ["a limit without a name", { rateLimits: [{ rule }] }],
  ["too many limits", { rateLimits: Array.from({ length: 9 }, (_, i) => ({ name: `${i}`, rule })) }],
  ["a name twice", { rateLimits: ["a", "b", "a"].map((name) => ({ name, rule })) }],
  ...[{ mode: "global" }, { limit: 0 }, { limit: 2 ** 31 }, { durationMs: 999 }, { durationMs: 1000.5 }].map(
    (wrong): [string, Fields] => [
      `the rule ${JSON.stringify(wrong)}`,
      { rateLimits: [{ name: "a", rule: { ...rule, ...wrong } }] },
    ],
  ),
  ...["", "a b", "a/b", "a\0", "é", "x".repeat(65), "a\n", 1].map((name): [string, Fields] => [
    `the limit ${JSON.stringify(name)}`,
    { rateLimits: [{ name, rule }] },
  ]),
  ...[0, -1, 1.5, 2 ** 31, "1", true].map((costMax): [string, Fields] => [
    `the bound on costs ${JSON.stringify(costMax)}`,
    { costMax },
  ]),
];

type Fields = Readonly<Record<string, unknown>>;
