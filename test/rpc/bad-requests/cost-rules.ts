import type { JsonObject } from "@bufbuild/protobuf";
import { type BadRequest, broken, goodBodyOf } from "./bad-request.ts";
import { long } from "./rules.ts";

/* Costs of verifications that break a rule. */

const badCosts: [string, string, JsonObject][] = [
  ["a cost below 0", "remaining.cost", { remaining: { cost: -1 } }],
  ["a cost far below 0", "remaining.cost", { remaining: { cost: -2147483648 } }],
  ["a cost of the limit below 0", "ratelimit.cost", { ratelimit: { cost: -7391 } }],
  ["a cost without a name", "ratelimits[0].name", { ratelimits: [{ cost: 7391 }] }],
  ["an empty name of a limit", "ratelimits[0].name", { ratelimits: [{ name: "", cost: 7391 }] }],
  ["a name of a limit with a slash", "ratelimits[0].name", { ratelimits: [{ name: "cnry/x1" }] }],
  ["a name of a limit of 65 characters", "ratelimits[0].name", { ratelimits: [{ name: long(65) }] }],
  ["a cost by name below 0", "ratelimits[1].cost", { ratelimits: [{ name: "a" }, { name: "b", cost: -7391 }] }],
  ["two costs of one name", "ratelimits", { ratelimits: [{ name: "a", cost: 7391 }, { name: "a" }] }],
  [
    "17 costs by name",
    "ratelimits",
    { ratelimits: Array.from({ length: 17 }, (_, i) => ({ name: `cnry-${i}`, cost: 7391 })) },
  ],
];

export const costRules: BadRequest[] = (["verifyKey", "explainKey"] as const).flatMap((call) =>
  badCosts.map(([name, field, fields]) => broken(name, call, field, { ...goodBodyOf(call), ...fields })),
);
