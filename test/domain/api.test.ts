import { describe, expect, it } from "vitest";
import { withDefaults } from "../../src/domain/api.ts";
import type { KeyDefaults } from "../../src/domain/fields.ts";

const monthly = { interval: "monthly", amount: 10, carryOver: false } as const;
const daily = { interval: "daily", amount: 1, carryOver: true } as const;
const strict = { mode: "strict", limit: 3, durationMs: 1000 } as const;
const local = { mode: "local", limit: 9, durationMs: 2000 } as const;
const all: KeyDefaults = {
  prefix: "live",
  byteLength: 32,
  rateLimit: strict,
  remaining: 10,
  refill: monthly,
  costMax: 9,
};

describe("a request takes over the defaults of an API", () => {
  it.each<[string, KeyDefaults, KeyDefaults, KeyDefaults]>([
    ["all of them if it is silent", {}, all, all],
    ["none where there are none", {}, {}, {}],
    [
      "none where it says something itself",
      { prefix: "test", byteLength: 16, rateLimit: local, remaining: 0, refill: daily, costMax: 1 },
      all,
      { prefix: "test", byteLength: 16, rateLimit: local, remaining: 0, refill: daily, costMax: 1 },
    ],
    ["each field on its own", { prefix: "test", remaining: 5 }, all, { ...all, prefix: "test", remaining: 5 }],
    ["never a refill rule without a counter", {}, { refill: monthly }, {}],
    ["a counter without a refill rule", {}, { remaining: 0 }, { remaining: 0 }],
  ])("%s", (_, request, defaults, expected) => {
    const given = { ...request, apiId: "api" };
    const completed = withDefaults(given, defaults);
    expect(completed).toEqual({ ...expected, apiId: "api" });
  });
});
