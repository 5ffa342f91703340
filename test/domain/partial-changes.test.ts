import { describe, expect, it } from "vitest";
import type { KeyDefaults, StoredApi } from "../../src/domain/api.ts";
import type { StoredKey } from "../../src/domain/key.ts";
import type { StoredOwner } from "../../src/domain/owner.ts";
import {
  areWhole,
  completeApiChanges,
  completeKeyChanges,
  completeOwnerChanges,
  type KeyChangeParts,
} from "../../src/domain/partial-changes.ts";

const strict = { mode: "strict", limit: 5, durationMs: 1000 } as const;
const daily = { interval: "daily", amount: 10, carryOver: true } as const;
const counter = { remaining: 3, refill: { ...daily, refilledThroughMs: 0 } };
const stored = { rateLimit: strict, rateLimits: [{ name: "burst", rule: strict }], counter } as unknown as StoredKey;
const bare = {} as StoredKey;

describe("a rule of a key that is changed in part", () => {
  it.each<[KeyChangeParts, object]>([
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
  ])("keeps the rest: %o", (parts, changes) => {
    expect(completeKeyChanges(parts, stored)).toEqual(changes);
  });

  it("begins with the defaults if there is none, and with what it needs", () => {
    const limit = { limit: 1, durationMs: 1000 };
    expect(completeKeyChanges({ rateLimit: limit }, bare)).toEqual({ rateLimit: { mode: "local", ...limit } });
    const named = (name: string) => ({ rateLimits: [{ name, rule: limit }] });
    expect(completeKeyChanges(named("other"), stored)).toEqual({
      rateLimits: [{ name: "other", rule: { mode: "local", ...limit } }],
    });
    const rule = { interval: "daily", amount: 1 } as const;
    expect(completeKeyChanges({ refill: rule }, bare)).toEqual({ refill: { ...rule, carryOver: false } });
  });

  it.each<[KeyChangeParts, string]>([
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
    expect(() => completeKeyChanges(parts, bare)).toThrow(expect.objectContaining({ name: "IncompleteRule", path }));
  });

  it("needs nothing stored if it is whole", () => {
    expect(areWhole({ rateLimit: strict, rateLimits: [{ name: "a", rule: strict }], refill: daily })).toBe(true);
    expect(areWhole({ rateLimit: null, rateLimits: null, refill: null })).toBe(true);
    expect(areWhole({})).toBe(true);
    for (const name of ["mode", "limit", "durationMs"]) {
      const rule = { ...strict, [name]: undefined };
      expect(areWhole({ rateLimit: rule })).toBe(false);
      expect(
        areWhole({
          rateLimits: [
            { name: "a", rule: strict },
            { name: "b", rule },
          ],
        }),
      ).toBe(false);
    }
    for (const name of Object.keys(daily)) expect(areWhole({ refill: { ...daily, [name]: undefined } })).toBe(false);
  });
});

it("rules of an owner are completed as those of a key", () => {
  const owner = stored as unknown as StoredOwner;
  expect(completeOwnerChanges({ refill: { amount: 2 }, enabled: false }, owner)).toEqual({
    enabled: false,
    refill: { ...daily, amount: 2 },
  });
  expect(completeOwnerChanges({ rateLimits: [{ name: "burst", rule: { mode: "local" } }] }, owner)).toEqual({
    rateLimits: [{ name: "burst", rule: { ...strict, mode: "local" } }],
  });
});

describe("defaults of an API that are changed in part", () => {
  const defaults: KeyDefaults = { prefix: "p", remaining: 5, rateLimit: strict, refill: daily };
  const completed = (parts: object, before = defaults) =>
    completeApiChanges({ defaults: parts }, { defaults: before } as StoredApi).defaults;

  it("keep the rest, also inside their rules", () => {
    expect(completed({ prefix: "q" })).toEqual({ ...defaults, prefix: "q" });
    expect(completed({ rateLimit: { limit: 9 } })).toEqual({ ...defaults, rateLimit: { ...strict, limit: 9 } });
    expect(completed({ refill: { amount: 9 } })).toEqual({ ...defaults, refill: { ...daily, amount: 9 } });
  });

  it("lose what is null", () => {
    expect(completed({ prefix: null, rateLimit: null, refill: null })).toEqual({ remaining: 5 });
    expect(completeApiChanges({ name: "n", defaults: null }, { defaults } as StoredApi)).toEqual({
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
