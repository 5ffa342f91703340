import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { type Clock, systemClock } from "../../../src/ambient/clock.ts";
import { Secret } from "../../../src/domain/secret.ts";
import { isDeep, sized } from "../../support/deep.ts";
import { startTestServer } from "../../support/in-process-server.ts";
import { StandbyPair } from "../../support/standby-pair.ts";
import { demandOf, httpReplicas, StrictCluster, StrictLoad, StrictTrial, varied } from "../../support/strict/index.ts";
import { createTestDatabase, hasPostgres } from "../../support/test-database.ts";

const hourMs = 3_600_000;
const keys = varied(
  demandOf([
    { keys: sized(4, 8), limit: 1, durationMs: 1000 },
    { keys: sized(4, 6), limit: 5, durationMs: 1000 },
    { keys: sized(1, 3), limit: 20, durationMs: 1000 },
  ]),
);
/** Of each key, on average, before the clocks are set, or the ledger is lost, and after. */
const windowsAtLeast = sized(1, 2);

/** Asks on for a while, until there have been so many windows of each key. A busy machine needs longer. */
async function askOn({ book }: StrictLoad): Promise<void> {
  const wanted = book.figures.windows + keys.length * windowsAtLeast;
  await delay(sized(0, 2500));
  while (book.figures.windows <= wanted) await delay(20);
}

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

  lateMs(): number {
    return systemClock.lateMs();
  }
}

async function startCluster(databaseUrl: string) {
  const cluster = await StrictCluster.start({ edges: 2, coordinators: 2, databaseUrl });
  return { cluster, replicas: await cluster.replicas(keys) };
}

async function startReplicas(databaseUrl: string) {
  const settings = { databaseUrl: new Secret(databaseUrl), databaseConnectionsMax: 4 };
  const servers = [await startTestServer({ settings }), await startTestServer({ settings })];
  const replicas = await httpReplicas(servers, keys);
  return { cluster: { size: servers.length, probe: async () => {} }, replicas };
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
      await askOn(load);
      for (const clock of clocks) clock.offMs = -clock.offMs;
      await askOn(load);
    });
    console.log("clocks", JSON.stringify(load.book.figures));
    expect(load.book.problems()).toEqual([]);
    expect(load.book.figures.filled).toBeGreaterThan(sized(0, keys.length));
  });

  it("when the ledger's synchronous standby takes its place", async () => {
    const pair = await StandbyPair.start("synchronous");
    // In the small form, replicas in this process: only the ledger is lost, and it is a process of its own.
    const { replicas, cluster } = isDeep ? await startCluster(pair.url) : await startReplicas(pair.url);
    const load = new StrictLoad(keys, replicas, 60);
    const trial = new StrictTrial(load, cluster);
    await load.during(async () => {
      await askOn(load);
      const report = await trial.run({
        name: "the primary is killed",
        ms: 300,
        begin: () => pair.primary.kill(),
        end: () => pair.promote(),
      });
      console.log("failover", JSON.stringify(report.figures));
      expect(report.problems).toEqual([]);
      await askOn(load);
    });
    console.log("in all", JSON.stringify(load.book.figures));
    expect(load.book.problems()).toEqual([]);
    if (isDeep) expect(trial.shortUndisturbed()).toEqual([]);
    expect(load.book.figures.filled).toBeGreaterThan(0);
  });
});
