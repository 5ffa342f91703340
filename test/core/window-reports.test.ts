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
  const log = createLog("error", () => {});
  const { limiter, stop } = startLocalLimits({ ...ambient, settings, log, hub: core.windows });
  onTestFinished(stop);
  return {
    isUp: () => coordinators.isUp,
    stop,
    remaining: (keyId: string) => limiter.peek(keyId, rule).remaining,
    /** How many of so many are admitted. */
    take(keyId: string, times: number): number {
      let admitted = 0;
      for (let i = 0; i < times; i++) {
        const permit = limiter.take(keyId, rule);
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

  it.each([
    ["a count below nothing", { count: -1 }],
    ["a window that ends before it began", { endsInMs: -1 }],
    ["a window that ends at no time", { endsInMs: Number.NaN }],
    ["a window that never ends", { endsInMs: Number.POSITIVE_INFINITY }],
    ["a length that is no number", { durationMs: Number.NaN }],
  ])("are not merged with a report of %s: its stream ends", async (_, impossible) => {
    const { address } = await startTestCoordinator();
    const edge = await startEdge([address]);
    const stream = openRawStream(address);
    const report = {
      subject: "k",
      replica: "odd",
      gen: 1,
      count: 5,
      endsInMs: 60_000,
      durationMs: 60_000,
      previousGen: 0,
    };
    const value = { reports: [{ ...report, ...impossible }] };
    stream.send({ calls: [{ id: 1, question: { case: "windows", value } }] });
    const ended = await Promise.race([
      stream.ended.then(() => "ended"),
      vi.waitFor(() => expect(stream.messages.length).toBe(2)).then(() => "answered"),
    ]);
    expect(ended).toBe("ended");
    edge.take("k", 1);
    await vi.waitFor(() => expect(edge.remaining("k")).toBe(9));
  });
});
