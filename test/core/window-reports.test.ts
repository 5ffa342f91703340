import { describe, expect, it, onTestFinished, vi } from "vitest";
import { systemClock } from "../../src/ambient/clock.ts";
import { createLog } from "../../src/ambient/log.ts";
import { createMetrics } from "../../src/ambient/metrics.ts";
import { createSystemRandom } from "../../src/ambient/random.ts";
import { readSettings } from "../../src/config/settings.ts";
import type { RateLimit } from "../../src/domain/rate-limit.ts";
import { startLocalLimits } from "../../src/server/local-limits.ts";
import { tempFolder } from "../support/temp-folder.ts";
import { openRawStream } from "./raw-stream.ts";
import { impossibleReports } from "./strange-reports.ts";
import { edgeAt, startTestCoordinator } from "./test-coordinator.ts";

const patient = { timeout: 60_000 };

/** An edge's local limits, which meet the others' at these coordinators and nowhere else. */
async function startEdge(addresses: readonly string[], limit = 10) {
  const rule: RateLimit = { mode: "local", limit, durationMs: 60_000 };
  const { core } = edgeAt(addresses);
  const { coordinators } = core;
  await vi.waitFor(() => expect(coordinators.isUp).toBe(true), patient);
  const { settings } = readSettings({ LATCHKEY_DATA_DIR: tempFolder(), LATCHKEY_WINDOWS_MAX: "1000" }, () => "");
  const ambient = { clock: systemClock, random: createSystemRandom(), metrics: createMetrics() };
  const logged: string[] = [];
  const log = createLog("warn", (line) => logged.push(line));
  const { limiter, stop } = startLocalLimits({ ...ambient, settings, log, hub: core.windows });
  onTestFinished(stop);
  return {
    isUp: () => coordinators.isUp,
    stop,
    logged,
    windows: core.windows,
    remaining: (keyId: string) => limiter.peek(keyId, rule).remaining,
    /** How many of so many are admitted. */
    take(keyId: string, times: number, apiId?: string): number {
      let admitted = 0;
      for (let i = 0; i < times; i++) {
        const permit = limiter.take(keyId, rule, 1, apiId);
        permit.commit();
        admitted += Number(permit.outcome === "admitted");
      }
      return admitted;
    },
  };
}

describe("local limits of edges without Redis", () => {
  it("are shared over the coordinator's streams: what one edge lets pass counts on the other", async () => {
    const { address } = await startTestCoordinator();
    const limit = 1000;
    const [a, b] = [await startEdge([address], limit), await startEdge([address], limit)];
    expect(a.take("k", 600)).toBe(600);
    let byB = 0;
    await vi.waitFor(() => {
      byB += b.take("k", 1);
      expect(b.remaining("k")).toBeLessThan(400);
    }, patient);
    byB += b.take("k", limit);
    expect(byB).toBeLessThanOrEqual(400);
    await vi.waitFor(() => expect(a.take("k", 1)).toBe(0), patient);
  });

  it("are reported again to a coordinator that has lost them, also those without new verifications", async () => {
    const first = await startTestCoordinator();
    const a = await startEdge([first.address]);
    expect(a.take("k", 10)).toBe(10);
    const b = await startEdge([first.address]);
    b.take("k", 1);
    await vi.waitFor(() => expect(b.take("k", 1)).toBe(0), patient);
    await first.stop();
    await vi.waitFor(() => expect([a.isUp(), b.isUp()]).toEqual([false, false]), patient);
    const second = await startTestCoordinator({ port: first.port });
    await vi.waitFor(() => expect([a.isUp(), b.isUp()]).toEqual([true, true]), patient);

    // Repeated: a report returns the others' counts, and they may send those a little later.
    const late = await startEdge([second.address]);
    let passed = 0;
    const askOnce = () => {
      passed += late.take("k", 1);
      expect(late.remaining("k")).toBe(0);
    };
    await vi.waitFor(askOnce, { ...patient, interval: 500 });
    // At 10 it would be its own limit that it is held to.
    expect(passed).toBeLessThan(10);
    expect(late.take("k", 5)).toBe(0);
  });

  it("go on by themselves while the coordinator is away", async () => {
    const { address, stop } = await startTestCoordinator();
    const edge = await startEdge([address]);
    await stop();
    await vi.waitFor(() => expect(edge.isUp()).toBe(false), patient);
    expect(edge.take("k", 15)).toBe(10);
  });

  it("each go to their key's coordinator, and the failure of one costs the others nothing", async () => {
    const two = [await startTestCoordinator(), await startTestCoordinator()] as const;
    const addresses = two.map(({ address }) => address);
    // So many that an edge without news would go on for longer than the test waits.
    const limit = 1000;
    const [a, b] = [await startEdge(addresses, limit), await startEdge(addresses, limit)];
    const areInStep = async (name: string) => {
      const keyIds = Array.from({ length: 20 }, (_, i) => `${name} ${i}`);
      for (const keyId of keyIds) a.take(keyId, limit);
      await vi.waitFor(() => expect(keyIds.filter((keyId) => b.take(keyId, 1) > 0)).toEqual([]), patient);
    };
    await areInStep("with both");
    await two[0].stop();
    await areInStep("with one");
  });

  it("are merged with nothing of a message that no edge of ours sends", async () => {
    const { address } = await startTestCoordinator();
    const { windows } = await startEdge([address]);
    await Promise.all(
      impossibleReports.map(async ([, question]) => {
        const stream = openRawStream(address);
        stream.ask({ id: 1, question });
        await Promise.race([stream.ended, stream.answered]);
      }),
    );
    const report = { replica: "other", gen: 2, count: 0, endsInMs: 60_000, durationMs: 60_000, previousGen: 0 };
    const { news } = await windows.exchange(["k", "l", "k0"].map((subject) => ({ subject, report })));
    expect(news.map((each) => each?.gen)).toEqual([2, 2, 2]);
  });

  it("are not kept by a coordinator that is full for their API: the edge says so and counts by itself", async () => {
    const { address } = await startTestCoordinator({ windowsMax: 10 });
    const edge = await startEdge([address]);
    for (let i = 0; i < 10; i++) expect(edge.take(`k${i}`, 3, "big")).toBe(3);
    const reason = "the coordinator is full";
    await vi.waitFor(() => expect(edge.logged.join()).toContain(reason), patient);
    expect(edge.take("k9", 15, "big")).toBe(7);
    edge.take("s", 3, "small");
    const report = { replica: "other", gen: 2, count: 1, endsInMs: 60_000, durationMs: 60_000, previousGen: 0 };
    const reports = ["k0", "k9", "s"].map((subject) => ({ subject, apiId: "big", report }));
    await vi.waitFor(async () => {
      const answer = await edge.windows.exchange(reports);
      expect(answer.news.map((news) => news?.others)).toEqual([3, undefined, 3]);
      expect(answer.refusal).toBe(reason);
    }, patient);
  });

  it("tell of more than a field holds as of the highest limit", async () => {
    const { address } = await startTestCoordinator();
    const { windows } = await startEdge([address]);
    const report = { gen: 1, count: 2 ** 31 - 1, endsInMs: 60_000, durationMs: 60_000, previousGen: 0 };
    for (const replica of ["a", "b"]) await windows.exchange([{ subject: "k", report: { ...report, replica } }]);
    const { news } = await windows.exchange([{ subject: "k", report: { ...report, count: 0, replica: "c" } }]);
    expect(news).toMatchObject([{ others: 2 ** 31 - 1, replicas: 3 }]);
  });
});
