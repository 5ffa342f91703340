import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it, vi } from "vitest";
import { askFor, wantedBy } from "../ratelimit/strict/asks.ts";
import { FaultyProxy } from "../support/faulty-proxy.ts";
import { ones } from "../support/ones.ts";
import { TestClock } from "../support/test-clock.ts";
import { askingFor, openRawStream } from "./raw-stream.ts";
import { edgeAt, startTestCoordinator, strictKey } from "./test-coordinator.ts";

const patient = { timeout: 60_000 };

/** A coordinator behind a network that can be cut. Its time passes when the test says so. */
async function setUp() {
  const clock = new TestClock();
  // A time of 0 would tell nothing.
  clock.advance(10_000);
  const coordinator = await startTestCoordinator({ clock });
  const keyId = await strictKey(coordinator.store, 100);
  const network = await FaultyProxy.start(coordinator.port);
  return { ...coordinator, clock, keyId, network, address: `127.0.0.1:${network.port}` };
}

/** Permits that the ledger was asked for. */
const wanted = ({ asked }: Awaited<ReturnType<typeof setUp>>) =>
  asked.reduce((sum, ask) => sum + wantedBy(ask) + ask.inAdvance, 0);

describe("an ask that is sent into a cut network", () => {
  it("never arrives if its link was given up before the network works again: no permit is granted to nobody", async () => {
    const cut = await setUp();
    const clock = new TestClock();
    const edge = edgeAt([cut.address], { clock });
    await vi.waitFor(() => expect(edge.core.coordinators.isUp).toBe(true), patient);
    cut.network.holding = "both";
    const lost = edge.permits.exchange(cut.keyId, askFor({ waiting: ones(7) }));
    lost.catch(() => {});
    // The link hears nothing, until it gives up.
    await vi.waitFor(() => {
      clock.advance(500);
      expect(cut.network.resets).toBe(1);
    }, patient);
    await expect(lost).rejects.toThrow("away");
    cut.network.holding = undefined;
    // The new link works, and what it says comes after everything that was queued before.
    await vi.waitFor(() => expect(edge.core.coordinators.isUp).toBe(true), patient);
    expect(await edge.permits.exchange(cut.keyId, askFor({ waiting: ones(1) }))).toMatchObject({ granted: 1 });
    expect(wanted(cut)).toBe(1);
  });

  it("arrives later and takes permits, as a control, if its link is closed politely and its age is not told", async () => {
    const cut = await setUp();
    const stream = openRawStream(cut.address);
    await vi.waitFor(() => expect(stream.messages.length).toBe(1));
    cut.network.holding = "both";
    stream.send({ calls: [askingFor(1, { subject: cut.keyId, waiting: ones(7) })] });
    await delay(50);
    stream.end();
    cut.clock.advance(1200);
    cut.network.holding = undefined;
    await vi.waitFor(() => expect(wanted(cut)).toBe(7), patient);
  });

  it("is not executed if it arrives more than a second late, and that is the answer", async () => {
    const cut = await setUp();
    const stream = openRawStream(cut.address);
    await vi.waitFor(() => expect(stream.messages.length).toBe(1));
    const seen = () => ({ seenTimeMs: (stream.heartbeats.at(-1) ?? stream.messages[0])?.timeMs ?? 0, seenAgeMs: 0 });
    const ask = (id: number) => askingFor(id, { subject: cut.keyId, waiting: ones(7) });
    stream.send({ calls: [ask(1)], ...seen() });
    await vi.waitFor(() => expect(stream.answers).toMatchObject([{ id: 1, answer: { case: "permits" } }]), patient);
    expect(wanted(cut)).toBe(7);
    cut.network.holding = "both";
    stream.send({ calls: [ask(2)], ...seen() });
    cut.clock.advance(1200);
    cut.network.holding = undefined;
    await vi.waitFor(() => {
      expect(stream.answers.slice(1)).toMatchObject([{ id: 2, answer: { case: "notExecuted" } }]);
    }, patient);
    expect(wanted(cut)).toBe(7);
    await vi.waitFor(() => expect(seen().seenTimeMs).toBe(cut.clock.monotonicMs()), patient);
    stream.send({ calls: [askingFor(3, { subject: cut.keyId, waiting: ones(1) })], ...seen() });
    await vi.waitFor(() => expect(wanted(cut)).toBe(8), patient);
  });
});
