import { spawn } from "node:child_process";
import { once } from "node:events";
import net from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { systemClock } from "../../src/ambient/clock.ts";
import { createLog } from "../../src/ambient/log.ts";
import { CoordinatorLink } from "../../src/core/remote/coordinator-link.ts";
import { NotExecuted } from "../../src/core/wire.ts";
import { nextTurn } from "../batching/next-turn.ts";
import { askFor } from "../ratelimit/strict/asks.ts";
import { ones } from "../support/ones.ts";
import { exchange, granting, setUpLink } from "./link-fixture.ts";
import { ScriptedCoordinator } from "./scripted-coordinator.ts";
import { edgeAt } from "./test-coordinator.ts";

/** A process of its own that sends heartbeats and answers nothing, so that this one can be busy. Answers its port. */
async function startBeatingProcess(): Promise<number> {
  const program = `
    const server = require("node:http2").createServer();
    server.on("stream", (stream) => {
      stream.on("error", () => {});
      stream.respond({ ":status": 200, "content-type": "application/grpc" });
      const beat = () => {
        const message = Buffer.alloc(14);
        message[4] = 9; // its length
        message[5] = (3 << 3) | 1; // time_ms
        message.writeDoubleLE(performance.now(), 6);
        stream.write(message);
      };
      setInterval(beat, 50);
      beat();
    });
    server.listen(0, "127.0.0.1", () => console.log(server.address().port));`;
  const child = spawn(process.execPath, ["--eval", program]);
  onTestFinished(() => void child.kill("SIGKILL"));
  const [line] = await once(child.stdout, "data");
  return Number(line);
}

function connectionsOf(server: net.Server): Promise<number> {
  return new Promise((resolve, reject) =>
    server.getConnections((error, count) => (error ? reject(error) : resolve(count))),
  );
}

describe("a link to a coordinator, knowing its peer,", () => {
  it("echoes the coordinator's time and its age, first of all in an empty message", async () => {
    const { coordinator, link } = await setUpLink();
    await vi.waitFor(() => expect(coordinator.greetings).toMatchObject([{ seenAgeMs: 0 }]));
    coordinator.beats = false;
    const saidMs = performance.now();
    coordinator.say({ timeMs: 4711 });
    await delay(100);
    void exchange(link, "k", askFor({ waiting: ones(1) })).catch(() => {});
    await vi.waitFor(() => expect(coordinator.requests.length).toBe(1));
    const { seenTimeMs = 0, seenAgeMs = 0 } = coordinator.requests[0] ?? {};
    expect(seenTimeMs).toBe(4711);
    expect(seenAgeMs).toBeGreaterThan(80);
    expect(seenAgeMs).toBeLessThanOrEqual(performance.now() - saidMs);
  });

  it("that is silent takes no new calls and says so of those under way, and still takes a late answer", async () => {
    const { coordinator, link } = await setUpLink();
    let overdue = 0;
    const late = exchange(link, "k", askFor({ waiting: ones(1) }), () => overdue++);
    await vi.waitFor(() => expect(coordinator.asks.length).toBe(1));
    coordinator.beats = false;
    await vi.waitFor(() => expect(link.isUp).toBe(false), { interval: 5 });
    expect(overdue).toBe(1);
    await expect(exchange(link, "k", askFor({ returned: 1 }))).rejects.toThrow(NotExecuted);
    coordinator.say({ answers: [granting(coordinator.asks[0]?.id ?? 0, 5)] });
    expect(await late).toMatchObject({ granted: 5 });
    expect([link.isUp, coordinator.streams, coordinator.asks.length]).toEqual([true, 1, 1]);
  });

  it("whose coordinator has no ledger takes no asks, and goes on with reports", async () => {
    const coordinator = await ScriptedCoordinator.start();
    const { core, permits } = edgeAt([coordinator.address]);
    await vi.waitFor(() => expect(core.coordinators.hasLedger).toBe(true));
    let overdue = 0;
    const late = permits.exchange("k", askFor({ waiting: ones(1) }), { onOverdue: () => overdue++ });
    await vi.waitFor(() => expect(coordinator.asks.length).toBe(1));
    coordinator.state = { ledgerAway: true };
    await vi.waitFor(() => expect(core.coordinators.hasLedger).toBe(false));
    expect([core.coordinators.isUp, overdue]).toEqual([true, 1]);
    expect(await permits.exchange("k", askFor({ returned: 1 }))).toEqual({ outcome: "notExecuted" });
    // Again if this process did not hear the coordinator for so long that it took it to be away.
    const report = vi.waitFor(() => core.windows.exchange([]));
    report.catch(() => {});
    await vi.waitFor(() => expect(coordinator.calls.length).toBe(2));
    const { id = 0, question } = coordinator.calls[1] ?? {};
    expect(question?.case).toBe("windows");
    coordinator.state = {};
    const windows = { case: "windows" as const, value: { epoch: "e" } };
    coordinator.say({ answers: [{ id, answer: windows }, granting(coordinator.asks[0]?.id ?? 0, 2)] });
    expect(await report).toMatchObject({ epoch: "e" });
    expect(await late).toMatchObject({ granted: 2 });
    expect(core.coordinators.hasLedger).toBe(true);
  });

  it("whose coordinator stops takes no calls, waits for its answers and then ends the stream", async () => {
    const { coordinator, link } = await setUpLink();
    const last = exchange(link, "k", askFor({ waiting: ones(1) }));
    await vi.waitFor(() => expect(coordinator.asks.length).toBe(1));
    coordinator.state = { stopping: true };
    await vi.waitFor(() => expect(link.isUp).toBe(false));
    await expect(exchange(link, "k", askFor({ returned: 1 }))).rejects.toThrow(NotExecuted);
    await delay(120);
    expect(coordinator.streams).toBe(1);
    coordinator.say({ answers: [granting(coordinator.asks[0]?.id ?? 0, 3)] });
    expect(await last).toMatchObject({ granted: 3 });
    await vi.waitFor(() => expect(coordinator.ends).toBe(1));
  });

  it("does not take a busy event loop of its own for a silent coordinator", async () => {
    const port = await startBeatingProcess();
    const log = createLog("error", () => {});
    const address = `127.0.0.1:${port}`;
    const link = new CoordinatorLink({ address, onRecall: () => {}, clock: systemClock, log });
    onTestFinished(() => link.close());
    await vi.waitFor(() => expect(link.isUp).toBe(true));
    let overdue = 0;
    void exchange(link, "k", askFor({ waiting: ones(1) }), () => overdue++).catch(() => {});
    for (let round = 0; round < 2; round++) {
      // Busy after input was read: then the timers that judge fire before the next input is.
      await nextTurn();
      const untilMs = performance.now() + 700;
      while (performance.now() < untilMs);
      await delay(60);
    }
    expect([link.isUp, overdue]).toEqual([true, 0]);
  });

  it("resets the connection that it gives up: the other side gets no polite end", async () => {
    const ends: string[] = [];
    const server = net.createServer((socket) => {
      socket.resume();
      socket.on("error", ({ code }: NodeJS.ErrnoException) => ends.push(code ?? "error"));
      socket.on("end", () => ends.push("end"));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as net.AddressInfo;
    const log = createLog("error", () => {});
    const address = `127.0.0.1:${port}`;
    const startedMs = performance.now();
    const link = new CoordinatorLink({ address, onRecall: () => {}, clock: systemClock, log });
    onTestFinished(() => {
      link.close();
      server.close();
    });
    // It accepts the connection and says nothing: each attempt ends after two seconds, and the next begins at once.
    await vi.waitFor(() => expect(ends).toEqual(["ECONNRESET"]), { timeout: 60_000, interval: 5 });
    const attemptMs = performance.now() - startedMs;
    expect(attemptMs).toBeGreaterThan(1950);
    expect(attemptMs).toBeLessThan(3000);
    await vi.waitFor(async () => expect(await connectionsOf(server)).toBe(1), { timeout: 500 });
  });
});
