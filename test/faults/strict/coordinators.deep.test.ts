import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it, onTestFinished } from "vitest";
import { FaultyProxy } from "../../support/faulty-proxy.ts";
import { PostgresServer } from "../../support/postgres-server.ts";
import { demandOf, StrictCluster, StrictLoad } from "../../support/strict/index.ts";
import { hasPostgres } from "../../support/test-database.ts";

/* Two coordinators as processes of their own, one of which fails while the other could serve all keys. */

const keys = demandOf([
  { keys: 6, limit: 2, durationMs: 1000 },
  { keys: 4, limit: 5, durationMs: 1000 },
  { keys: 1, limit: 20, durationMs: 1000 },
]);

/** With `patient`, a busy machine makes no coordinator give up on the ledger. */
async function start({ patient = false } = {}) {
  const postgres = await PostgresServer.start();
  onTestFinished(() => postgres.remove());
  const ledgerLinks = [await FaultyProxy.start(postgres.port), await FaultyProxy.start(postgres.port)] as const;
  const ledgerUrl = ledgerLinks.map(({ port }) => postgres.url(undefined, port));
  const databaseUrl = postgres.url();
  const cluster = await StrictCluster.start({ edges: 2, coordinators: 2, databaseUrl, ledgerUrl, patient });
  const load = new StrictLoad(keys, await cluster.replicas(keys), 50);
  await load.warmUp();
  const { book } = load;
  /** For how long callers got 503 because of what `act` did, and how many. */
  const unavailableMs = async (name: string, act: () => Promise<unknown>) => {
    const before = book.unavailableAtMs.length;
    await act();
    const atMs = book.unavailableAtMs.slice(before);
    const spanMs = longestOutageMs(atMs);
    console.log(name, JSON.stringify({ unavailable: atMs.length, spanMs: Math.round(spanMs) }));
    return spanMs;
  };
  return { cluster, load, book, ledgerLink: ledgerLinks[0], unavailableMs };
}

/** 503s with a second between them belong to two outages. */
function longestOutageMs(atMs: readonly number[]): number {
  let [longestMs, firstMs, lastMs] = [0, Number.NEGATIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const ms of atMs.toSorted((a, b) => a - b)) {
    if (ms - lastMs > 1000) firstMs = ms;
    lastMs = ms;
    longestMs = Math.max(longestMs, lastMs - firstMs);
  }
  return longestMs;
}

/** The best of three. A machine that is busy with something else may be late now and then, but not each time. */
async function bestOf(boundMs: number, measure: () => Promise<number>): Promise<number> {
  let bestMs = await measure();
  for (let more = 0; more < 2 && bestMs > boundMs; more++) bestMs = Math.min(bestMs, await measure());
  return bestMs;
}

describe.runIf(hasPostgres)("with one coordinator of two", () => {
  it("killed or hung, callers get 503 for at most 0.8 s; without its ledger, for at most 1 s", async () => {
    const { cluster, load, book, ledgerLink, unavailableMs } = await start();
    await load.during(async () => {
      await delay(1000);
      const hang = () =>
        unavailableMs("hung", async () => {
          cluster.coordinator(1).kill("SIGSTOP");
          await delay(1500);
          cluster.coordinator(1).kill("SIGCONT");
          await delay(1000);
        });
      expect(await bestOf(800, hang)).toBeLessThanOrEqual(800);
      const kill = () =>
        unavailableMs("killed", async () => {
          cluster.coordinator(1).kill("SIGKILL");
          await delay(1000);
          await cluster.replaceCoordinator(1);
          await delay(1000);
        });
      expect(await bestOf(800, kill)).toBeLessThanOrEqual(800);
      const cutLedger = () =>
        unavailableMs("without its ledger", async () => {
          ledgerLink.silent = true;
          await delay(2500);
          ledgerLink.silent = false;
          await delay(1500);
        });
      expect(await bestOf(1000, cutLedger)).toBeLessThanOrEqual(1000);
    });
    expect(book.problems()).toEqual([]);
    expect(book.figures.over).toBe(0);
    expect(book.figures.admitted).toBeGreaterThan(200);
  });

  it("restarted in order five times, there is no 503 and no short window", async () => {
    const { cluster, load, book, unavailableMs } = await start({ patient: true });
    const restartAll = () =>
      unavailableMs("restarted", async () => {
        for (let restart = 0; restart < 5; restart++) {
          const index = restart % 2;
          cluster.coordinator(index).kill("SIGTERM");
          expect(await cluster.coordinator(index).exited).toBe(0);
          await cluster.replaceCoordinator(index);
          // As someone does who restarts them one after the other.
          await cluster.untilConnected();
        }
        await delay(1000);
      });
    let unavailable = Number.NaN;
    await load.during(async () => {
      // A machine that is busy with something else may be late with an answer now and then, but not each time.
      for (let round = 0; round < 3 && unavailable !== 0; round++) {
        const before = book.counts.unavailable;
        await restartAll();
        unavailable = book.counts.unavailable - before;
      }
    });
    expect(book.problems()).toEqual([]);
    expect([book.figures.over, unavailable, book.short().length]).toEqual([0, 0, 0]);
    expect(book.figures.filled).toBeGreaterThan(keys.length);
  });
});
