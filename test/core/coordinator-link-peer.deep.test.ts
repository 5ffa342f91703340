import { spawn } from "node:child_process";
import { once } from "node:events";
import net from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { systemClock } from "../../src/ambient/clock.ts";
import { createLog } from "../../src/ambient/log.ts";
import { CoordinatorLink } from "../../src/core/remote/coordinator-link.ts";
import { nextTurn } from "../batching/next-turn.ts";
import { askFor } from "../ratelimit/strict/asks.ts";
import { ones } from "../support/ones.ts";
import { exchange } from "./link-fixture.ts";

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
