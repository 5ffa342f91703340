import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { SeededRandom } from "../../domain/seeded-random.ts";
import {
  demandOf,
  type Fault,
  killEdge,
  linkFaults,
  processFaults,
  type StartedTrial,
  startTrial,
  varied,
} from "../../support/strict/index.ts";
import { hasPostgres } from "../../support/test-database.ts";

const keys = varied(
  demandOf([
    { keys: 8, limit: 1, durationMs: 1000 },
    { keys: 6, limit: 5, durationMs: 1000 },
    { keys: 2, limit: 20, durationMs: 1000 },
  ]),
);
const edges = 2;
const demandPerEdge =
  keys.reduce((sum, { limit, demand, costs = [1] }) => sum + limit * demand * mean(costs), 0) / edges;

function mean(numbers: readonly number[]): number {
  return numbers.reduce((sum, one) => sum + one, 0) / numbers.length;
}

function start(): Promise<StartedTrial> {
  return startTrial({ edges, keys, underWayMax: 50 });
}

/** Breaks one thing after the other under one load. */
async function runAll({ trial, load }: StartedTrial, faults: readonly Fault[]): Promise<void> {
  await load.during(async () => {
    await delay(1000);
    for (const fault of faults) {
      const { problems, figures } = await trial.run(fault);
      console.log(fault.name, JSON.stringify(figures));
      expect({ fault: fault.name, problems }).toEqual({ fault: fault.name, problems: [] });
    }
    await delay(1500);
  });
  console.log("in all", JSON.stringify({ ...load.book.figures, skipped: load.skipped }));
  expect(load.book.problems()).toEqual([]);
  expect(trial.shortUndisturbed()).toEqual([]);
  expect(load.book.figures.over).toBe(0);
  // Otherwise there was hardly a load, and nothing has been shown.
  expect(load.book.figures.windows).toBeGreaterThan(keys.length * 4);
}

// Processes and links at once: each trial has a cluster of its own, and mostly waits. More of them would be too much for
// two cores.
describe
  .runIf(hasPostgres)
  .concurrent("a strict limit is never exceeded, and serves again by itself, when", { retry: 0 }, () => {
    const inTurn = { concurrent: false };

    describe("of its processes", () => {
      it("an edge is killed: the window loses only the permits that this edge held", inTurn, async () => {
        const started = await start();
        const { cluster, load, trial } = started;
        await load.during(async () => {
          await delay(1000);
          for (const edge of [0, 1]) {
            const held = await cluster.heldBy(edge);
            const underWay = load.costUnderWayAt(edge);
            const atMs = Date.now();
            const { problems, figures } = await trial.run(killEdge(started, edge));
            const missing = load.book.missingAt(atMs);
            console.log(`edge ${edge} is killed`, JSON.stringify({ ...figures, held, underWay, missing }));
            expect(problems).toEqual([]);
            // Also requests that it admitted without an answer, and a block that was being sent to it.
            expect(missing).toBeLessThanOrEqual(held + underWay + Math.ceil(demandPerEdge / 4));
          }
        });
        expect(load.book.problems()).toEqual([]);
      });

      it("processes are killed or stand still", inTurn, async () => {
        const started = await start();
        await runAll(started, processFaults(started));
      });
    });

    it("links break, fall silent or lose answers", async () => {
      const started = await start();
      await runAll(started, linkFaults(started, new SeededRandom(5)));
    });
  });
