import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it, onTestFinished } from "vitest";
import { SeededRandom } from "../../domain/seeded-random.ts";
import { FaultyProxy } from "../../support/faulty-proxy.ts";
import { PostgresServer } from "../../support/postgres-server.ts";
import { StrictCluster } from "../../support/strict-cluster.ts";
import { killEdge, linkFaults, processFaults } from "../../support/strict-faults.ts";
import { demandOf, StrictLoad } from "../../support/strict-load.ts";
import { type Fault, StrictTrial } from "../../support/strict-trial.ts";
import { hasPostgres } from "../../support/test-database.ts";
import { through } from "../postgres/lane-fixture.ts";

const keys = demandOf([
  { keys: 8, limit: 1, durationMs: 1000 },
  { keys: 6, limit: 5, durationMs: 1000 },
  { keys: 2, limit: 20, durationMs: 1000 },
]);
const edges = 2;
const demandPerEdge = keys.reduce((sum, { limit, demand }) => sum + limit * demand, 0) / edges;

async function start() {
  const postgres = await PostgresServer.start();
  onTestFinished(() => postgres.remove());
  const ledgerLink = await FaultyProxy.start(postgres.port);
  const databaseUrl = postgres.url();
  const ledgerUrl = through(databaseUrl, ledgerLink.port);
  const cluster = await StrictCluster.start({ edges, coordinators: 2, databaseUrl, ledgerUrl });
  const load = new StrictLoad(keys, await cluster.replicas(keys), 50);
  await load.warmUp();
  const trial = new StrictTrial(load, cluster);
  return { postgres, ledgerLink, cluster, load, trial };
}

/** Breaks one thing after the other under one load. */
async function runAll(trial: StrictTrial, load: StrictLoad, faults: readonly Fault[]): Promise<void> {
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

describe.runIf(hasPostgres)("a strict limit is never exceeded, and serves again by itself, when", () => {
  const timeout = 120_000;

  it("an edge is killed: what is lost to the window is what that one held", { timeout }, async () => {
    const { cluster, load, trial } = await start();
    await load.during(async () => {
      await delay(1000);
      for (const edge of [0, 1]) {
        const held = await cluster.heldBy(edge);
        const underWay = load.underWayAt(edge);
        const atMs = Date.now();
        const { problems, figures } = await trial.run(killEdge(cluster, edge, load.book));
        const missing = load.book.missingAt(atMs);
        console.log(`edge ${edge} is killed`, JSON.stringify({ ...figures, held, underWay, missing }));
        expect(problems).toEqual([]);
        // And what it let pass without an answer, and a block that was on its way to it.
        expect(missing).toBeLessThanOrEqual(held + underWay + Math.ceil(demandPerEdge / 4));
      }
    });
    expect(load.book.problems()).toEqual([]);
  });

  it("processes are killed or stand still", { timeout }, async () => {
    const { postgres, cluster, load, trial } = await start();
    await runAll(trial, load, processFaults(cluster, postgres));
  });

  it("links break, fall silent or lose answers", { timeout }, async () => {
    const { ledgerLink, cluster, load, trial } = await start();
    await runAll(trial, load, linkFaults(cluster, ledgerLink, new SeededRandom(5)));
  });
});
