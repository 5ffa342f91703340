import { expect } from "vitest";
import { type Costs, CostTooHigh, costsOfOne } from "../../src/domain/costs.ts";
import type { Key } from "../../src/domain/key.ts";
import { limitsOfKey } from "../../src/domain/limits.ts";
import { standing } from "./fakes.ts";
import { both, type Case, counted, find, findFresh, limited, peek, plain, rateLimit } from "./verify-key-cases.ts";

/* Costs, and keys with several limits. */

const costs = (given: Partial<Costs>) => ({ costs: { ...costsOfOne, ...given } });
const named = limitsOfKey(plain.id, [
  { name: "minute", rule: { ...rateLimit, limit: 3 } },
  { name: "month", rule: { ...rateLimit, limit: 4 } },
]);
const several: Key = { ...limited, rateLimits: named };
const namedOnly = (): Key => ({ ...counted(), rateLimits: named });

const [take10, take3, take4] = ["key_1", "key_1/minute", "key_1/month"].map(
  (subject, i) => `take of ${[10, 3, 4][i]} for ${subject} of api_1`,
) as [string, string, string];
const [commit3, commit4] = ["commit key_1/minute", "commit key_1/month"];
const [release3, release4] = ["release key_1/minute", "release key_1/month"];
const states = (minute: object, month: object) => [
  { name: "minute", durationMs: rateLimit.durationMs, state: expect.objectContaining(minute) },
  { name: "month", durationMs: rateLimit.durationMs, state: expect.objectContaining(month) },
];
const { taken, released, peeked } = standing;

export const costCases: Case[] = [
  {
    name: "a cost is taken from the limit, another from the counter",
    asked: costs({ unnamed: 4, counter: 3 }),
    found: [both()],
    permits: ["admitted"],
    spends: [{ outcome: "spent", remaining: 2 }],
    verdict: { code: "VALID", remaining: 2, rateLimit: taken },
    did: [find, `${take10} at 4`, "spend for key_1 at 3", "commit"],
    balance: 2,
  },
  {
    name: "a cost that the counter cannot pay takes nothing from the limit either",
    asked: costs({ unnamed: 4, counter: 6 }),
    found: [both()],
    permits: ["admitted"],
    spends: [{ outcome: "exhausted", remaining: 5 }],
    verdict: { code: "USAGE_EXCEEDED", remaining: 5, rateLimit: released },
    did: [find, `${take10} at 4`, "spend for key_1 at 6", "release"],
  },
  {
    name: "a cost of 0 only looks at the limit",
    asked: costs({ unnamed: 0 }),
    found: [both()],
    spends: [{ outcome: "spent", remaining: 4 }],
    verdict: { code: "VALID", remaining: 4, rateLimit: peeked },
    did: [find, peek, "spend for key_1"],
  },
  {
    name: "a cost of 0 does not touch the counter, and is valid where nothing is left",
    asked: costs({ counter: 0 }),
    found: [{ ...plain, counter: { remaining: 0 } }],
    verdict: { code: "VALID", remaining: 0, rateLimit: undefined },
    did: [find],
  },
  {
    name: "the name of a limit that the key does not have costs nothing",
    asked: costs({ named: [{ name: "hour", cost: 99 }] }),
    found: [limited],
    permits: ["admitted"],
    verdict: { code: "VALID", remaining: undefined, rateLimit: taken },
    did: [find, take10, "commit"],
  },
  {
    name: "a cost up to the key's highest is taken",
    asked: costs({ counter: 7 }),
    found: [{ ...counted(), costMax: 7 }],
    spends: [{ outcome: "exhausted", remaining: 5 }],
    verdict: { code: "USAGE_EXCEEDED", remaining: 5, rateLimit: undefined },
    did: [find, "spend for key_1 at 7"],
  },
  ...(
    [
      ["the counter", { counter: 8 }, "remaining.cost"],
      ["the limit", { unnamed: 8 }, "ratelimit.cost"],
      ["a limit with a name", { named: [{ name: "hour", cost: 8 }] }, "ratelimits[0].cost"],
    ] as const
  ).map(([what, given, path]) => ({
    name: `a higher cost of ${what} is a mistake of the caller, and takes nothing`,
    asked: costs(given),
    found: [{ ...both(), costMax: 7 }],
    verdict: new CostTooHigh(path, 7),
    did: [find],
  })),
  {
    name: "a key that is refused anyway is refused, whatever it would cost",
    asked: costs({ counter: 8 }),
    found: [{ ...plain, enabled: false, costMax: 7 }],
    verdict: { code: "DISABLED", remaining: undefined, rateLimit: undefined },
    did: [find],
  },
  {
    name: "several limits are all taken, each at its cost",
    asked: costs({ named: [{ name: "month", cost: 2 }] }),
    found: [several],
    permits: ["admitted", "admitted", "admitted"],
    verdict: { code: "VALID", remaining: undefined, rateLimit: taken, rateLimits: states(taken, taken) },
    did: [find, take10, take3, `${take4} at 2`, "commit", commit3, commit4],
  },
  {
    name: "a limit with a name that refuses is named, and the others get back what was taken",
    found: [several],
    permits: ["admitted", "limited", "admitted"],
    verdict: {
      code: "RATE_LIMITED",
      remaining: undefined,
      rateLimit: released,
      rateLimits: states(taken, released),
      reason: { check: "limit", of: "key", name: "minute" },
    },
    did: [find, take10, take3, take4, "release", release4],
  },
  {
    name: "of several that refuse, the one without a name comes first",
    found: [several],
    permits: ["limited", "limited", "admitted"],
    verdict: {
      code: "RATE_LIMITED",
      remaining: undefined,
      rateLimit: taken,
      rateLimits: states(taken, released),
      reason: { check: "limit", of: "key", name: undefined },
    },
    did: [find, take10, take3, take4, release4],
  },
  {
    name: "a counter that is used up gives back what all limits gave",
    found: [namedOnly()],
    permits: ["admitted", "admitted"],
    spends: [{ outcome: "exhausted", remaining: 0 }],
    verdict: { code: "USAGE_EXCEEDED", remaining: 0, rateLimit: undefined, rateLimits: states(released, released) },
    did: [find, take3, take4, "spend for key_1", release3, release4],
  },
  {
    name: "a key that is refused shows where all its limits stand",
    found: [{ ...several, enabled: false }],
    verdict: { code: "DISABLED", remaining: undefined, rateLimit: peeked, rateLimits: states(peeked, peeked) },
    did: [find, peek, "peek at 3 for key_1/minute", "peek at 4 for key_1/month"],
  },
  {
    name: "a limit that is gone from the ledger has the key read again, with nothing taken",
    found: [several, plain],
    permits: ["admitted", "missing", "admitted"],
    verdict: { code: "VALID", remaining: undefined, rateLimit: undefined },
    did: [find, take10, take3, take4, "release", release4, findFresh],
  },
];
