import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { SeededRandom } from "../domain/seeded-random.ts";
import {
  demandOf,
  killEdge,
  linkFaults,
  processFaults,
  type StrictLoad,
  startTrial,
  varied,
} from "../support/strict/index.ts";

/* A third of the time with nine edges and nothing broken, the rest with everything broken in turn. */

const minutes = Number(process.env.LATCHKEY_SOAK_MINUTES ?? "10");
const seed = Number(process.env.LATCHKEY_SOAK_SEED ?? Date.now() % 1_000_000);
const sayEveryMs = 30_000;
const keys = varied(
  demandOf([
    { keys: 14, limit: 1, durationMs: 1000 },
    { keys: 9, limit: 5, durationMs: 1000 },
    { keys: 3, limit: 20, durationMs: 1000 },
    { keys: 1, limit: 100, durationMs: 5000 },
  ]),
);

function say(name: string, { book, skipped }: StrictLoad): void {
  console.log(new Date().toISOString(), name, JSON.stringify({ ...book.figures, skipped }));
}

describe(`strict limits for ${minutes} minutes, seed ${seed}`, () => {
  it("nine edges, nothing broken: never over, and never short", async () => {
    const { load, cluster } = await startTrial({ edges: 9, keys, underWayMax: 8, patient: true, seed });
    const lostBefore = cluster.linksLost;
    const untilMs = performance.now() + (minutes / 3) * 60_000;
    await load.during(async () => {
      while (performance.now() < untilMs && load.book.problems().length === 0) {
        await delay(Math.min(sayEveryMs, untilMs - performance.now()));
        say("nine edges", load);
      }
    });
    say("nine edges, in all", load);
    expect(load.book.problems()).toEqual([]);
    const linksLost = cluster.linksLost - lostBefore;
    console.log({ linksLost });
    // A machine too busy for its own heartbeats loses permits as a broken link does.
    if (linksLost === 0) expect(load.book.short()).toEqual([]);
  });

  it("everything broken in turn: never over, and mended by itself", async () => {
    const random = new SeededRandom(seed);
    const started = await startTrial({ edges: 3, keys, underWayMax: 40, seed });
    const { cluster, load, trial } = started;
    const untilMs = performance.now() + (minutes * 2 * 60_000) / 3;
    const times = new Map<string, number>();
    await load.during(async () => {
      while (performance.now() < untilMs) {
        const edge = random.integer(0, cluster.size - 1);
        const breakable = [killEdge(started, edge), ...processFaults(started), ...linkFaults(started, random)];
        const { fault, problems, figures } = await trial.run(random.pick(breakable));
        console.log(fault, JSON.stringify(figures));
        expect({ fault, problems }).toEqual({ fault, problems: [] });
        times.set(fault, (times.get(fault) ?? 0) + 1);
        await delay(random.integer(0, 2500));
      }
    });
    say("faults, in all", load);
    console.log(Object.fromEntries(times));
    expect(load.book.problems()).toEqual([]);
    expect(trial.shortUndisturbed()).toEqual([]);
  });
});
