import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { brokenBatchers, playSteps, steps } from "./any-timing.ts";

const batchMax = fc.integer({ min: 1, max: 3 });

describe("a batcher, with any timing", () => {
  it("keeps the order of a key, one batch under way and all its other promises", async () => {
    await fc.assert(
      fc.asyncProperty(steps, batchMax, async (played, most) => {
        expect(await playSteps(played, most)).toEqual([]);
      }),
      { numRuns: 300 },
    );
  });

  it.each(Object.entries(brokenBatchers))("is caught by this very test if %s", async (promise, broken) => {
    const run = await fc.check(
      fc.asyncProperty(steps, batchMax, async (played, most) => {
        expect(await playSteps(played, most, broken)).not.toContain(promise);
      }),
      { numRuns: 1000, endOnFailure: true },
    );
    expect(run.failed).toBe(true);
  });
});
