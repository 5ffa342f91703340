import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { type Clock, systemClock } from "../../../src/ambient/clock.ts";
import { Secret } from "../../../src/domain/secret.ts";
import { startTestServer } from "../../support/in-process-server.ts";
import { StandbyPair } from "../../support/standby-pair.ts";
import { demandOf, httpReplicas, StrictCluster, StrictLoad, StrictTrial, varied } from "../../support/strict/index.ts";
import { createTestDatabase, hasPostgres } from "../../support/test-database.ts";

const hourMs = 3_600_000;
const keys = varied(
  demandOf([
    { keys: 8, limit: 1, durationMs: 1000 },
    { keys: 6, limit: 5, durationMs: 1000 },
    { keys: 3, limit: 20, durationMs: 1000 },
  ]),
);

/** A replica's clock that is off, and is set while it runs. */
class WrongClock implements Clock {
  offMs: number;

  constructor(offMs: number) {
    this.offMs = offMs;
  }

  nowMs(): number {
    return systemClock.nowMs() + this.offMs;
  }

  monotonicMs(): number {
    return systemClock.monotonicMs();
  }
}

// At once, since each has a ledger of its own and mostly waits.
describe.runIf(hasPostgres).concurrent("a strict limit is never exceeded", () => {
  it("by replicas whose clocks are an hour off, and are set again and again", async () => {
    const clocks = [-hourMs, 0, hourMs].map((offMs) => new WrongClock(offMs));
    const settings = { databaseUrl: new Secret(await createTestDatabase()), databaseConnectionsMax: 4 };
    const servers = [];
    for (const clock of clocks) servers.push(await startTestServer({ settings, clock, ledgerKeepsItsClock: true }));
    const load = new StrictLoad(keys, await httpReplicas(servers, keys), 30);
    await load.during(async () => {
      await delay(2500);
      for (const clock of clocks) clock.offMs = -clock.offMs;
      await delay(2500);
    });
    console.log("clocks", JSON.stringify(load.book.figures));
    expect(load.book.problems()).toEqual([]);
    expect(load.book.figures.windows).toBeGreaterThan(keys.length * 3);
    expect(load.book.figures.filled).toBeGreaterThan(keys.length);
  });

  it("when the ledger's synchronous standby takes its place", async () => {
    const pair = await StandbyPair.start("synchronous");
    const cluster = await StrictCluster.start({ edges: 2, coordinators: 2, databaseUrl: pair.url });
    const load = new StrictLoad(keys, await cluster.replicas(keys), 60);
    const trial = new StrictTrial(load, cluster);
    await load.during(async () => {
      await delay(1500);
      const report = await trial.run({
        name: "the primary is killed",
        ms: 300,
        begin: () => pair.primary.kill(),
        end: () => pair.promote(),
      });
      console.log("failover", JSON.stringify(report.figures));
      expect(report.problems).toEqual([]);
      await delay(2500);
    });
    console.log("in all", JSON.stringify(load.book.figures));
    expect(load.book.problems()).toEqual([]);
    expect(trial.shortUndisturbed()).toEqual([]);
    expect(load.book.figures.windows).toBeGreaterThan(keys.length * 3);
  });
});
