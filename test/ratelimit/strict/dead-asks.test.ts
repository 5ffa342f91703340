import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it, vi } from "vitest";
import { FaultyProxy } from "../../support/faulty-proxy.ts";
import { askFor } from "./asks.ts";
import { openRawStream } from "./raw-stream.ts";
import { coordinatorsAt, startTestCoordinator, strictKey } from "./test-coordinator.ts";

const patient = { timeout: 10_000 };

/** A coordinator behind a network that can be cut. */
async function setUp() {
  const coordinator = await startTestCoordinator();
  const keyId = await strictKey(coordinator.store, 100);
  const network = await FaultyProxy.start(coordinator.port);
  return { ...coordinator, keyId, network, address: `127.0.0.1:${network.port}` };
}

/** Permits that the ledger was asked for. */
const wanted = ({ asked }: Awaited<ReturnType<typeof setUp>>) => asked.reduce((sum, { wantMax }) => sum + wantMax, 0);

describe("an ask that is sent into a cut network", () => {
  it("never arrives if its link was given up before the network works again: no permit is granted to nobody", async () => {
    const cut = await setUp();
    const edge = coordinatorsAt([cut.address]);
    await vi.waitFor(() => expect(edge.isUp).toBe(true), patient);
    cut.network.holding = true;
    const lost = edge.exchange(cut.keyId, askFor({ wantMin: 7 }));
    await expect(lost).rejects.toThrow("away");
    cut.network.holding = false;
    // The new link works, and what it says comes after everything that was queued before.
    await vi.waitFor(() => expect(edge.isUp).toBe(true), patient);
    expect(await edge.exchange(cut.keyId, askFor({ wantMin: 1 }))).toMatchObject({ granted: 1 });
    expect(wanted(cut)).toBe(1);
  });

  it("arrives later and takes permits, as a control, if its link is closed politely and its age is not told", async () => {
    const cut = await setUp();
    const stream = openRawStream(cut.address);
    await vi.waitFor(() => expect(stream.messages.length).toBe(1));
    cut.network.holding = true;
    stream.send({ asks: [{ id: 1, keyId: cut.keyId, wantMin: 7, wantMax: 7 }] });
    await delay(50);
    stream.end();
    await delay(1200);
    cut.network.holding = false;
    await vi.waitFor(() => expect(wanted(cut)).toBe(7), patient);
  });

  it("is not executed if it arrives more than a second late, and that is the answer", async () => {
    const cut = await setUp();
    const stream = openRawStream(cut.address);
    await vi.waitFor(() => expect(stream.messages.length).toBe(1));
    const seen = () => ({ seenTimeMs: (stream.heartbeats.at(-1) ?? stream.messages[0])?.timeMs ?? 0, seenAgeMs: 0 });
    stream.send(seen());
    await vi.waitFor(() => expect(stream.heartbeats.length).toBeGreaterThan(2));
    cut.network.holding = true;
    const late = seen();
    stream.send({ asks: [{ id: 1, keyId: cut.keyId, wantMin: 7, wantMax: 7, returned: 2 }], ...late });
    await delay(1200);
    cut.network.holding = false;
    await vi.waitFor(() => {
      const answers = stream.messages.flatMap(({ answers }) => answers);
      expect(answers).toMatchObject([{ id: 1, outcome: { case: "notExecuted" } }]);
    }, patient);
    expect(cut.asked).toEqual([]);
    stream.send({ asks: [{ id: 2, keyId: cut.keyId, wantMin: 1, wantMax: 1 }], ...seen() });
    await vi.waitFor(() => expect(wanted(cut)).toBe(1), patient);
  });
});
