import { describe, expect, it, vi } from "vitest";
import { newStore, startTestCoordinator } from "../core/test-coordinator.ts";
import { startTestServer } from "../support/in-process-server.ts";
import { readMetric } from "../support/read-metric.ts";

const patient = { timeout: 60_000 };

async function startTwo() {
  const store = newStore();
  const two = [await startTestCoordinator({ store }), await startTestCoordinator({ store })] as const;
  return { two, addresses: two.map(({ address }) => address) };
}

describe("an edge's metrics", () => {
  it("tell of each coordinator by its address whether it can be reached", async () => {
    const { two, addresses } = await startTwo();
    const { internalPort } = await startTestServer({ settings: { role: "edge", coordinators: addresses } });
    const gauges = () =>
      Promise.all(
        addresses.map((address) => readMetric(internalPort, `latchkey_coordinator_up{address="${address}"}`)),
      );
    await vi.waitFor(async () => expect(await gauges()).toEqual([1, 1]), patient);
    await two[0].stop();
    await vi.waitFor(async () => expect(await gauges()).toEqual([0, 1]), patient);
  });
});
