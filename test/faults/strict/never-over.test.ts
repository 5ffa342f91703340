import { describe, expect, it } from "vitest";
import type { Settings } from "../../../src/config/settings.ts";
import { Secret } from "../../../src/domain/secret.ts";
import { isDeep, sized } from "../../support/deep.ts";
import { startTestServer, type TestServer } from "../../support/in-process-server.ts";
import { mixedCosts } from "../../support/limited.ts";
import { openTestStore } from "../../support/open-test-store.ts";
import { readMetric } from "../../support/read-metric.ts";
import {
  demandOf,
  httpReplicas,
  type KeyDemand,
  StrictHarness,
  StrictLoad,
  varied,
} from "../../support/strict/index.ts";
import { createTestDatabase, hasPostgres } from "../../support/test-database.ts";

/* Everything in one process, over real connections: nine processes would spend two cores on starting. */

/** Windows as short as they can be, so that there are many of them. */
const manyKeys = varied(
  demandOf([
    { keys: 14, limit: 1, durationMs: 1000 },
    { keys: 11, limit: 5, durationMs: 1000 },
    { keys: 3, limit: 20, durationMs: 1000 },
  ]),
);
const bigLimits: KeyDemand[] = [
  { limit: 100, durationMs: 4000, demand: 3, shape: "bursts" },
  { limit: 1000, durationMs: 5000, demand: 1.5, shape: "even" },
  { limit: 300, durationMs: 4000, demand: 1, shape: "even", of: "owner", costs: mixedCosts },
];
const hugeLimits: KeyDemand[] = [
  { limit: 10_000, durationMs: 2000, demand: 2, shape: "even" },
  { limit: 10_000, durationMs: 2000, demand: 1.5, shape: "roaming" },
  { limit: 1000, durationMs: 1000, demand: 4, shape: "bursts" },
];

async function onPostgres(): Promise<Partial<Settings>> {
  return { databaseUrl: new Secret(await createTestDatabase()), databaseConnectionsMax: 4 };
}

async function startMany(count: number, settings: Partial<Settings>): Promise<TestServer[]> {
  // The first makes the tables.
  const first = await startTestServer({ settings });
  const others = Array.from({ length: count - 1 }, () => startTestServer({ settings }));
  return [first, ...(await Promise.all(others))];
}

async function startEdges(count: number, coordinators: number): Promise<TestServer[]> {
  const behind = await startMany(coordinators, { ...(await onPostgres()), role: "coordinator" });
  const addresses = behind.map(({ internalPort }) => `127.0.0.1:${internalPort}`);
  return startMany(count, { role: "edge", coordinators: addresses });
}

async function loadOn(servers: readonly TestServer[], demand: readonly KeyDemand[]): Promise<StrictLoad> {
  const load = new StrictLoad(demand, await httpReplicas(servers, demand), Math.ceil(60 / servers.length));
  await load.warmUp();
  return load;
}

async function unsettledRefusals(servers: readonly TestServer[]): Promise<number> {
  const read = ({ internalPort }: TestServer) => readMetric(internalPort, "latchkey_unsettled_denials_total");
  return (await Promise.all(servers.map(read))).reduce((sum, count) => sum + count, 0);
}

interface Case {
  readonly name: string;
  readonly needsPostgres: boolean;
  readonly start: () => Promise<TestServer[]>;
}
const replicaCases: Case[] = [
  { name: "one embedded replica", needsPostgres: false, start: () => startMany(1, {}) },
  { name: "one replica on Postgres", needsPostgres: true, start: async () => startMany(1, await onPostgres()) },
  { name: "3 replicas", needsPostgres: true, start: async () => startMany(3, await onPostgres()) },
  { name: "5 replicas", needsPostgres: true, start: async () => startMany(5, await onPostgres()) },
];
const edgeCases: Case[] = [
  { name: "3 edges and a coordinator", needsPostgres: true, start: () => startEdges(3, 1) },
  { name: "9 edges and 2 coordinators", needsPostgres: true, start: () => startEdges(9, 2) },
];
const groups = sized<[string, Case[]][]>(
  [["replicas and edges", [replicaCases[0], replicaCases[2], edgeCases[0]] as Case[]]],
  [
    ["replicas", replicaCases],
    ["edges", edgeCases],
  ],
);
/** Of each case. */
const windowsAtLeast = sized(manyKeys.length + 10, 85);
const loadMs = sized(2000, 5000);
/** However busy the machine is, every call is decided; at full size, in the time that the server gives it. */
const timeoutMs = sized(60_000, 450);
let windows = 0;

describe("never more than the limit, and all of it if enough is asked for, in every window", () => {
  // Some at once: each has servers and keys of its own, and mostly waits. All at once would be too much for one process.
  describe.each(groups)("of many keys at once: %s", (_, cases) => {
    it.concurrent.each(cases.filter(({ needsPostgres }) => hasPostgres || !needsPostgres))(
      "$name",
      async ({ name, start }) => {
        const servers = await start();
        const load = await loadOn(servers, manyKeys);
        // Otherwise there was hardly a load, and nothing has been shown.
        await load.run(loadMs, () => {
          const { windows, filled } = load.book.figures;
          return windows >= windowsAtLeast && filled > sized(manyKeys.length / 2, manyKeys.length);
        });
        check(name, load, await unsettledRefusals(servers));
      },
    );
  });

  if (isDeep) {
    it.runIf(hasPostgres)("of limits of 100 and 1 000: 3 replicas", { concurrent: true }, async () => {
      const servers = await startMany(3, await onPostgres());
      const load = await loadOn(servers, bigLimits);
      await load.run(5500, () => load.book.figures.filled > 0);
      check("100 and 1 000", load, await unsettledRefusals(servers));
    });
  }

  it.runIf(hasPostgres)("of limits of 10 000: 5 replicas, asked without sockets", { concurrent: true }, async () => {
    const store = await openTestStore({ connectionsMax: 2 });
    const harness = await StrictHarness.start({ store, rules: hugeLimits, replicas: 5, timeoutMs });
    const load = new StrictLoad(hugeLimits, harness.replicas, 20_000);
    await load.run(loadMs, () => load.book.figures.filled > 0);
    check("10 000", load, harness.unsettledRefusals);
  });

  if (isDeep) {
    it.runIf(hasPostgres)("of 500 at least", () => {
      expect(windows).toBeGreaterThanOrEqual(500);
    });
  }
});

function check(name: string, { book, skipped }: StrictLoad, unsettled: number): void {
  windows += book.figures.windows;
  console.log(name, JSON.stringify({ ...book.figures, skipped, unsettled }));
  expect(book.problems()).toEqual([]);
  // On a busy machine some calls get no verdict. What they took along may be missing, which is a known reason too.
  const withoutVerdict = sized(book.counts.unavailable, 0);
  expect(book.problemsWithFilling(unsettled + withoutVerdict), "all that was asked for in time").toEqual([]);
}
