import { describe, expect, it } from "vitest";
import type { KeyDefaults, PartsOf } from "../../src/domain/fields.ts";
import { areWhole, completeChanges } from "../../src/domain/partial-changes.ts";
import { apiFields, type KeyFields, keyFields, ownerFields } from "../../src/domain/resources.ts";

const strict = { mode: "strict", limit: 5, durationMs: 1000 } as const;
const daily = { interval: "daily", amount: 10, carryOver: true } as const;
const stored = {
  rateLimit: strict,
  rateLimits: [{ name: "burst", rule: strict }],
  // As it is stored with a counter.
  refill: { ...daily, refilledThroughMs: 0 },
};
const bare = {};

describe("a rule of a key that is changed in part", () => {
  it.each<[PartsOf<KeyFields>, object]>([
    [{ rateLimit: { limit: 9 } }, { rateLimit: { ...strict, limit: 9 } }],
    [{ rateLimit: { durationMs: 2000 } }, { rateLimit: { ...strict, durationMs: 2000 } }],
    [{ rateLimit: { mode: "local" } }, { rateLimit: { ...strict, mode: "local" } }],
    [{ rateLimit: null }, { rateLimit: null }],
    [{ refill: { amount: 1 } }, { refill: { ...daily, amount: 1 } }],
    [{ refill: { interval: "monthly" } }, { refill: { ...daily, interval: "monthly" } }],
    [{ refill: { carryOver: false } }, { refill: { ...daily, carryOver: false } }],
    [
      { refill: null, name: "n" },
      { refill: null, name: "n" },
    ],
    [
      { rateLimits: [{ name: "burst", rule: { limit: 7 } }] },
      { rateLimits: [{ name: "burst", rule: { ...strict, limit: 7 } }] },
    ],
    [{ rateLimits: [{ name: "burst", rule: {} }] }, { rateLimits: [{ name: "burst", rule: strict }] }],
    [{ rateLimits: null }, { rateLimits: null }],
    [{ enabled: false }, { enabled: false }],
    // What always has a value gets its default.
    [
      { enabled: null, meta: null, ownerId: null },
      { enabled: true, meta: {}, ownerId: null },
    ],
  ])("keeps the rest: %o", (parts, changes) => {
    expect(completeChanges(keyFields, parts, stored)).toEqual(changes);
  });

  it("begins with the defaults if there is none, and with what it needs", () => {
    const limit = { limit: 1, durationMs: 1000 };
    expect(completeChanges(keyFields, { rateLimit: limit }, bare)).toEqual({ rateLimit: { mode: "local", ...limit } });
    const named = (name: string) => ({ rateLimits: [{ name, rule: limit }] });
    expect(completeChanges(keyFields, named("other"), stored)).toEqual({
      rateLimits: [{ name: "other", rule: { mode: "local", ...limit } }],
    });
    const rule = { interval: "daily", amount: 1 } as const;
    expect(completeChanges(keyFields, { refill: rule }, bare)).toEqual({ refill: { ...rule, carryOver: false } });
  });

  it.each<[PartsOf<KeyFields>, string]>([
    [{ rateLimit: { limit: 1 } }, "ratelimit"],
    [{ rateLimit: { durationMs: 1000 } }, "ratelimit"],
    [{ rateLimit: { mode: "strict" } }, "ratelimit"],
    [
      {
        rateLimits: [
          { name: "a", rule: strict },
          { name: "b", rule: { limit: 1 } },
        ],
      },
      "ratelimits[1]",
    ],
    [{ refill: { amount: 1 } }, "refill"],
    [{ refill: { carryOver: true } }, "refill"],
  ])("is incomplete if there is none: %o", (parts, path) => {
    expect(() => completeChanges(keyFields, parts, bare)).toThrow(
      expect.objectContaining({ name: "IncompleteRule", path }),
    );
  });

  it("needs nothing stored if it is whole", () => {
    expect(areWhole(keyFields, { rateLimit: strict, rateLimits: [{ name: "a", rule: strict }], refill: daily })).toBe(
      true,
    );
    expect(areWhole(keyFields, { rateLimit: null, rateLimits: null, refill: null })).toBe(true);
    expect(areWhole(keyFields, {})).toBe(true);
    for (const name of ["mode", "limit", "durationMs"]) {
      const rule = { ...strict, [name]: undefined };
      expect(areWhole(keyFields, { rateLimit: rule })).toBe(false);
      expect(
        areWhole(keyFields, {
          rateLimits: [
            { name: "a", rule: strict },
            { name: "b", rule },
          ],
        }),
      ).toBe(false);
    }
    for (const name of Object.keys(daily))
      expect(areWhole(keyFields, { refill: { ...daily, [name]: undefined } })).toBe(false);
  });
});

it("rules of an owner are completed as those of a key", () => {
  expect(completeChanges(ownerFields, { refill: { amount: 2 }, enabled: false }, stored)).toEqual({
    enabled: false,
    refill: { ...daily, amount: 2 },
  });
  expect(completeChanges(ownerFields, { rateLimits: [{ name: "burst", rule: { mode: "local" } }] }, stored)).toEqual({
    rateLimits: [{ name: "burst", rule: { ...strict, mode: "local" } }],
  });
});

describe("defaults of an API that are changed in part", () => {
  const defaults: KeyDefaults = { prefix: "p", remaining: 5, rateLimit: strict, refill: daily };
  const completed = (parts: object, before = defaults) =>
    completeChanges(apiFields, { defaults: parts }, { defaults: before }).defaults;

  it("keep the rest, also inside their rules", () => {
    expect(completed({ prefix: "q" })).toEqual({ ...defaults, prefix: "q" });
    expect(completed({ rateLimit: { limit: 9 } })).toEqual({ ...defaults, rateLimit: { ...strict, limit: 9 } });
    expect(completed({ refill: { amount: 9 } })).toEqual({ ...defaults, refill: { ...daily, amount: 9 } });
  });

  it("lose what is null", () => {
    expect(completed({ prefix: null, rateLimit: null, refill: null })).toEqual({ remaining: 5 });
    expect(completeChanges(apiFields, { name: "n", defaults: null }, { defaults })).toEqual({
      name: "n",
      defaults: {},
    });
  });

  it.each<[object, KeyDefaults, string]>([
    [{ rateLimit: { limit: 1 } }, {}, "defaults.ratelimit"],
    [{ refill: { amount: 1 } }, { remaining: 1 }, "defaults.refill"],
    [{ refill: daily }, {}, "defaults.refill"],
    [{ remaining: null }, defaults, "defaults.refill"],
  ])("are incomplete: %o on %o", (parts, before, path) => {
    expect(() => completed(parts, before)).toThrow(expect.objectContaining({ path }));
  });
});
