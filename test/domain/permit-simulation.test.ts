import { describe, expect, it } from "vitest";
import { sized } from "../support/deep.ts";
import { type SimulatedFigures, type SimulatedLoad, simulate } from "./permit-simulation.ts";

/** With even ones the ledger recalls permits. */
const seeds = sized([1, 2], [1, 2, 3]);
const rttsMs = [1, 1, 40, 40, 80, 80];
const farthestMs = Math.max(...rttsMs);

/** The most that each load may cost: mean and 99th percentile wait of admitted requests, ledger calls per admitted one. */
const loads = [
  {
    name: "10 000/60 s at 3 000 rps",
    limit: 10_000,
    durationMs: 60_000,
    rps: 3_000,
    windows: sized(2, 4),
    cost: [2, 90, 0.03],
  },
  {
    name: "1 000/10 s at 300 rps",
    limit: 1_000,
    durationMs: 10_000,
    rps: 300,
    windows: sized(4, 8),
    cost: [3, 90, 0.2],
  },
  { name: "100/1 s at 300 rps", limit: 100, durationMs: 1_000, rps: 300, windows: sized(20, 40), cost: [30, 180, 0.9] },
  { name: "20/10 s at 30 rps", limit: 20, durationMs: 10_000, rps: 30, windows: sized(10, 20), cost: [60, 200, 3] },
] as const;

describe.each(loads)("six replicas, 1–80 ms from the ledger, at $name", (load) => {
  it.each(seeds)("fill every window to exactly the limit, within the load's cost (seed %i)", (seed) => {
    const figures = figuresOf(load, seed);
    print(load.name, seed, figures);
    expect(new Set(figures.perWindow)).toEqual(new Set([load.limit]));
    const [meanMs, p99Ms, calls] = load.cost;
    expect(figures.meanWaitMs).toBeLessThan(meanMs);
    expect(figures.p99WaitMs).toBeLessThan(p99Ms);
    expect(figures.callsPerAdmitted).toBeLessThan(calls);
  });

  it("answer most of the denied from memory", () => {
    expect(figuresOf(load, 1).deniedLocallyShare).toBeGreaterThan(0.7);
  });

  it.each(seeds)("never exceed the limit when messages are lost and uses refused (seed %i)", (seed) => {
    const figures = simulate({ ...loadOf(load, seed), lostShare: 0.05, refusedShare: 0.1 });
    expect(figures.perWindow.length).toBeGreaterThan(1);
    expect(Math.max(...figures.perWindow)).toBeLessThanOrEqual(load.limit);
  });
});

describe("a hot key", () => {
  it("waits, on average, less than a twentieth of the farthest replica's round trip", () => {
    for (const load of loads.slice(0, 2)) {
      expect(figuresOf(load, 1).meanWaitMs).toBeLessThan(farthestMs / 20);
    }
  });

  it("calls the ledger less than once for 20 admitted requests, 18 times overloaded", () => {
    expect(figuresOf(loads[0], 1).callsPerAdmitted).toBeLessThan(0.05);
  });

  it("loses no permit to refused uses: each window fills with uses that were not refused", () => {
    const figures = simulate({ ...loadOf(loads[1], 1), refusedShare: 0.2 });
    expect(new Set(figures.perWindow)).toEqual(new Set([1_000]));
  });

  it("loses only the permits that a crashed replica held, for one window, and makes few calls to look for them", () => {
    const figures = simulate({ ...loadOf(loads[0], 1), windows: 4, crashAtMs: 61_500 });
    const [before, during, after] = figures.perWindow;
    expect(before).toBe(10_000);
    expect(during).toBeGreaterThan(9_700);
    expect(during).toBeLessThan(10_000);
    expect(after).toBe(10_000);
    expect(figures.callsPerAdmitted).toBeLessThan(0.05);
  });
});

describe("requests of different costs", () => {
  /** Demand in permits is as large as in the loads above. */
  const costs = [1, 1, 1, 1, 1, 1, 2, 3, 5, 20];
  const [, hot, , small] = loads;
  const hungry = (load: (typeof loads)[number], seed: number) => ({ ...loadOf(load, seed), costs });

  it.each(seeds)("fill every window to exactly the limit while small ones are refused (seed %i)", (seed) => {
    for (const load of [hot, small]) {
      const figures = simulate(hungry(load, seed));
      print(`${load.name} with costs`, seed, figures);
      expect(new Set(figures.perWindow)).toEqual(new Set([load.limit]));
    }
  });

  it.each(seeds)(
    "leave less than the cost if all have the same, and two replicas do not keep it from each other (seed %i)",
    (seed) => {
      for (const cost of [3, 7, 19]) {
        const figures = simulate({ ...loadOf(small, seed), costs: [cost], rttsMs: [1, 40] });
        const filled = small.limit - (small.limit % cost);
        expect(new Set(figures.perWindow)).toEqual(new Set([filled]));
      }
    },
  );

  it.each(seeds)("never exceed the limit when messages are lost and uses refused (seed %i)", (seed) => {
    const figures = simulate({ ...hungry(hot, seed), lostShare: 0.05, refusedShare: 0.1 });
    expect(Math.max(...figures.perWindow)).toBeLessThanOrEqual(hot.limit);
  });

  it.each(seeds)("are denied within the hold and two round trips after the first short answer (seed %i)", (seed) => {
    for (const rttMs of [1, 40]) {
      const figures = simulate({ ...hungry(hot, seed), rttsMs: [rttMs, rttMs, rttMs], recalls: true });
      expect(figures.deniedByCost.get(20)).toBeGreaterThan(0);
      // Before it the message that was under way and its own; after it the last pause, and the last answer's way.
      expect(figures.deniedMaxWaitMs).toBeLessThanOrEqual(2 * rttMs + (50 + 2 * rttMs) + 25 + rttMs);
    }
  });
});

const simulated = new Map<string, SimulatedFigures>();

/** The same load with the same seed is simulated once. */
function figuresOf(load: (typeof loads)[number], seed: number): SimulatedFigures {
  const name = `${load.name}, ${seed}`;
  const figures = simulated.get(name) ?? simulate(loadOf(load, seed));
  simulated.set(name, figures);
  return figures;
}

function loadOf(load: (typeof loads)[number], seed: number): SimulatedLoad {
  const { limit, durationMs, rps, windows } = load;
  return { limit, durationMs, requestsPerSecond: rps, windows: windows + 1, rttsMs, recalls: seed % 2 === 0, seed };
}

function print(name: string, seed: number, figures: SimulatedFigures): void {
  console.info(
    `${name}, seed ${seed}: wait mean ${figures.meanWaitMs.toFixed(2)} ms, p99 ${figures.p99WaitMs.toFixed(1)} ms; ` +
      `${figures.callsPerAdmitted.toFixed(4)} ledger calls per admitted; ` +
      `${(figures.deniedLocallyShare * 100).toFixed(1)} % of denials from memory`,
  );
}
