import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { FaultyProxy } from "../../support/faulty-proxy.ts";
import { demandOf, StrictCluster, StrictLoad, varied } from "../../support/strict/index.ts";
import { createTestDatabase, hasPostgres } from "../../support/test-database.ts";

/* One round of each kind of fault, however long it takes. faults.deep.test.ts has all of them, and what has to be in time. */

const keys = varied(
  demandOf([
    { keys: 5, limit: 1, durationMs: 1000 },
    { keys: 4, limit: 5, durationMs: 1000 },
  ]),
);
/** Ends a test that waits in vain. */
const waitMaxMs = 120_000;

async function start() {
  const databaseUrl = await createTestDatabase();
  const ledger = await FaultyProxy.start(Number(new URL(databaseUrl).port));
  const ledgerUrl = Object.assign(new URL(databaseUrl), { port: ledger.port }).href;
  const cluster = await StrictCluster.start({ edges: 2, coordinators: 2, databaseUrl, ledgerUrl });
  const load = new StrictLoad(keys, await cluster.replicas(keys), 30);
  await load.warmUp();
  return { cluster, ledger, load };
}

async function until(what: string, holds: () => boolean): Promise<void> {
  const deadlineMs = performance.now() + waitMaxMs;
  while (!holds()) {
    if (performance.now() > deadlineMs) throw new Error(`it never came to this: ${what}`);
    await delay(20);
  }
}

/** Resolves when each of these edges has let a call pass that began after now. */
function servesAgain({ book }: StrictLoad, what: string, edges: readonly number[] = [0, 1]): Promise<void> {
  const sinceMs = performance.now();
  const serves = (edge: number) => (book.lastPassedMs.get(edge) ?? 0) > sinceMs;
  return until(`every edge serves ${what}`, () => edges.every(serves));
}

/** Resolves when every key has a window that opened after now. */
function servesEveryKey({ book }: StrictLoad, what: string): Promise<void> {
  const wallMs = Date.now();
  const isNew = (key: number) =>
    book.windows.some(({ key: of, resetMs, rule }) => of === key && resetMs - rule.durationMs > wallMs);
  return until(`every key is served ${what}`, () => keys.every((_, key) => isNew(key)));
}

describe.runIf(hasPostgres)("a strict limit", () => {
  it("is never exceeded, and serves again by itself, when processes are killed and links are cut", async () => {
    const { cluster, ledger, load } = await start();
    const { book } = load;
    await load.during(async () => {
      await cluster.killEdge(0);
      book.killed(0);
      await servesAgain(load, "but the killed one", [1]);
      await cluster.replaceEdge(0);
      await servesAgain(load, "with another one in the place of the killed one");

      cluster.coordinator(0).kill("SIGKILL");
      await servesEveryKey(load, "by the other coordinator");
      await cluster.replaceCoordinator(0);

      const links = cluster.links[1] as FaultyProxy[];
      const before = book.counts.unavailable;
      for (const link of links) link.silent = true;
      await until("the edge that is cut off cannot decide", () => book.counts.unavailable > before);
      for (const link of links) link.silent = false;
      await servesAgain(load, "after the cut");

      // The ledger has granted permits, and nobody gets the answer.
      const wanted = ledger.cuts + 3;
      ledger.onReply = () => (ledger.cuts < wanted ? "cut" : "pass");
      await until("three answers of the ledger are lost", () => ledger.cuts >= wanted);
      await servesAgain(load, "after answers of the ledger were lost");

      const beforeLedger = book.counts.unavailable;
      ledger.silent = true;
      await until("without the ledger nobody can decide", () => book.counts.unavailable > beforeLedger);
      ledger.silent = false;
      await servesAgain(load, "when the ledger is back");
    });
    console.log(JSON.stringify({ ...book.figures, skipped: load.skipped }));
    expect(book.problems()).toEqual([]);
    // Otherwise there was hardly a load, and nothing has been shown: book.test.ts shows that one more would be found.
    expect(book.figures.windows).toBeGreaterThan(keys.length * 2);
    expect(book.figures.filled).toBeGreaterThan(keys.length);
  });
});
