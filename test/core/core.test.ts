import { describe, expect, it, onTestFinished, vi } from "vitest";
import { systemClock } from "../../src/ambient/clock.ts";
import { createLog } from "../../src/ambient/log.ts";
import { createMetrics } from "../../src/ambient/metrics.ts";
import { createSystemRandom } from "../../src/ambient/random.ts";
import { coreCases } from "./core-cases.ts";
import { buildLocalCore } from "./local-core.ts";
import { edgeAt, newStore, startTestCoordinator } from "./test-coordinator.ts";

const ambient = {
  clock: systemClock,
  random: createSystemRandom(),
  metrics: createMetrics(),
  log: createLog("error", () => {}),
};

/** Time passes more slowly for edges, so that none is late on a busy machine: these cases are not about time. */
const patientClock = { ...systemClock, monotonicMs: () => systemClock.monotonicMs() / 20 };

/** An edge that has found its coordinators. */
async function joinEdge(addresses: readonly string[]) {
  const { core } = edgeAt(addresses, { clock: patientClock });
  await vi.waitFor(() => expect(core.coordinators.links.every(({ link }) => link.hasLedger)).toBe(true), {
    interval: 5,
  });
  return core;
}

coreCases("a core in the process", async () => {
  const store = newStore();
  const { core } = buildLocalCore(store, ambient);
  return { store, join: async () => core };
});

coreCases("a core behind a coordinator", async () => {
  const { store, address } = await startTestCoordinator();
  return { store, join: () => joinEdge([address]) };
});

coreCases("a core behind two coordinators", async () => {
  const store = newStore();
  const addresses = [(await startTestCoordinator({ store })).address, (await startTestCoordinator({ store })).address];
  return { store, join: () => joinEdge(addresses) };
});

describe("a core behind a coordinator", () => {
  const reportOf = (replica: string, count: number) => ({
    subject: "k",
    report: { replica, gen: 1, count, endsInMs: 60_000, durationMs: 60_000, previousGen: 0 },
  });

  it("merges the windows of its fronts, and one in the process leaves that to others", async () => {
    const { address } = await startTestCoordinator();
    const [a, b] = [await joinEdge([address]), await joinEdge([address])];
    const first = await a.windows.exchange([reportOf("a", 7), { ...reportOf("a", 1), subject: "l" }]);
    expect(first.news).toMatchObject([
      { gen: 1, others: 0, replicas: 1, counted: true },
      { gen: 1, others: 0, replicas: 1, counted: true },
    ]);
    const second = await b.windows.exchange([reportOf("b", 5)]);
    expect(second.news).toMatchObject([{ gen: 1, others: 7, replicas: 2, counted: true }]);
    expect(second.epoch).toBe(first.epoch);
    expect((await a.windows.exchange([reportOf("a", 8)])).news).toMatchObject([{ others: 5 }]);
    expect(buildLocalCore(newStore(), ambient).core.windows).toBeUndefined();
  });

  it("tells of changes of root keys", async () => {
    const { address, store } = await startTestCoordinator();
    const edge = await joinEdge([address]);
    const { position } = await edge.changes.read(undefined);
    await store.rootKeys.addFirst("digest of a root key", "start", 0);
    const news = await edge.changes.read(position);
    expect(news.changed).toEqual([{ kind: "rootKeys" }]);
    expect(news.position).not.toEqual(position);
  });

  it("shares a look-up of one secret among the callers of a turn, and of no other turn", async () => {
    const { address, store } = await startTestCoordinator();
    const edge = await joinEdge([address]);
    const findByDigest = vi.spyOn(store.keys, "findByDigest");
    onTestFinished(() => findByDigest.mockRestore());
    const digest = "d".repeat(43);
    const first = Promise.all([1, 2, 3].map(() => edge.keys.findByDigest(digest)));
    await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
    await edge.keys.findByDigest(digest);
    await first;
    expect(findByDigest.mock.calls.length).toBe(2);
  });
});
