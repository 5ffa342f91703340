import { describe, expect, it } from "vitest";
import { checkHistory, explain } from "./check-history.ts";
import { type Mistake, mistakes } from "./mistakes.ts";
import { simulate } from "./simulated-service.ts";

const operations = 2500;

describe("the checker of random operations", () => {
  it("finds nothing wrong with a correct service", () => {
    for (let seed = 1; seed <= 10; seed++) {
      const history = simulate({ seed, operations });
      expect({ seed, problems: explain(checkHistory(history), history) }).toEqual({ seed, problems: [] });
    }
  });

  const each = Object.entries(mistakes).map(([name, [rule, text]]) => ({ mistake: name as Mistake, rule, text }));

  it.each(each)("catches that $text", ({ mistake, rule }) => {
    const isCaught = (seed: number) =>
      checkHistory(simulate({ seed, operations, mistake })).some((problem) => problem.rule === rule);
    expect([1, 2, 3, 4, 5].some(isCaught)).toBe(true);
  });
});
