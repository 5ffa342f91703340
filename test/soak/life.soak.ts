import { describe, expect, it } from "vitest";
import { checkHistory, explain } from "../life/check-history.ts";
import { type Mistake, mistakes } from "../life/mistakes.ts";
import { expectExplainedRun } from "../life/random-run.ts";
import { simulate } from "../life/simulated-service.ts";
import { startReplicas, startWorkers } from "../life/start-service.ts";

/* The random operations of test/life, from one seed after the other. */

const minutes = Number(process.env.LATCHKEY_SOAK_MINUTES || "5");
const firstSeed = Number(process.env.LATCHKEY_SOAK_SEED ?? Date.now() % 1_000_000);
const operations = 10_000;

describe(`random operations for ${minutes} minutes, from seed ${firstSeed}`, () => {
  it.each([
    ["through three replicas on Postgres with Redis", startReplicas],
    ["on the embedded store with two workers", startWorkers],
  ])("%s are explained by one order of them", async (name, start) => {
    const untilMs = performance.now() + (minutes / 2) * 60_000;
    for (let seed = firstSeed; performance.now() < untilMs; seed++) {
      const begunMs = performance.now();
      const started = await start();
      await expectExplainedRun(started, { seed, operations });
      await started.stop();
      console.log(name, seed, `${((performance.now() - begunMs) / 1000).toFixed(1)} s`);
    }
  });

  it("of a correct simulated service are explained, and of one with a mistake they are not", () => {
    for (let seed = firstSeed; seed < firstSeed + 300; seed++) {
      const history = simulate({ seed, operations: 2500 });
      expect({ seed, problems: explain(checkHistory(history), history) }).toEqual({ seed, problems: [] });
    }
    for (const mistake of Object.keys(mistakes) as Mistake[]) {
      const seeds = Array.from({ length: 20 }, (_, at) => firstSeed + at);
      const caught = seeds.filter((seed) => checkHistory(simulate({ seed, operations: 2500, mistake })).length > 0);
      console.log(mistake, `caught in ${caught.length} of ${seeds.length} runs`);
      expect(caught.length, mistake).toBeGreaterThan(0);
    }
  });
});
