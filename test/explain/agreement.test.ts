import { describe, expect, it } from "vitest";
import { sized } from "../support/deep.ts";
import { brokenExplanations } from "./broken-explanations.ts";
import { runCases } from "./run-cases.ts";
import { World } from "./world.ts";

/* More of these: `npm run soak -- explain`. */

const cases = sized(2000, 10_000);

describe("an explanation", () => {
  it("of thousands of random verifications agrees with each, also on a replica that is new to the key, and changes nothing", async () => {
    const { problems, codes } = await runCases(await World.open(), { seed: 1, cases });
    expect(problems.slice(0, 5).join("\n")).toBe("");
    expect([...codes.keys()].sort()).toEqual([
      "CostTooHigh",
      "DISABLED",
      "EXPIRED",
      "FORBIDDEN",
      "INSUFFICIENT_PERMISSIONS",
      "NOT_FOUND",
      "RATE_LIMITED",
      "USAGE_EXCEEDED",
      "VALID",
    ]);
  });

  it.each(brokenExplanations)("that %s is found out", async (_, explain) => {
    const { problems } = await runCases(await World.open(), { seed: 1, cases, explain });
    expect(problems).not.toEqual([]);
  });
});
