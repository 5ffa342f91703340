import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import type net from "node:net";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { isDeep, sized } from "../support/deep.ts";
import { shellProgram } from "../support/shell-programs.ts";
import { tempFolder } from "../support/temp-folder.ts";
import { verify } from "./hostile/http1-cases.ts";
import { frame, frameType, getRequest, hello as http2Hello, preface } from "./hostile/http2-frames.ts";
import { captureClientHello, startTlsTarget, type TlsTarget } from "./hostile/start-tls-target.ts";
import type { TlsTargetState } from "./hostile/tls-target.ts";

/* Connections as no honest client makes them, against the internal port over TLS (see hostile/tls-target.ts). */

const megabyte = 1024 * 1024;
/** Longer than the target waits for anything, several waits in a row included. */
const goneWithinMs = sized(120_000, 12_000);
/** As src/server/internal-listener.ts has it. */
const strangersMax = 256;
/** A record with a request for new keys. */
const keyUpdateBytes = 27;
/** The frame with which HTTP/2 acknowledges the settings of the other side. */
const settingsAck = frame(frameType.settings, 1, 0);

let target: TlsTarget;
let clientHello: Buffer;
let atStart: TlsTargetState;

beforeAll(async () => {
  target = await startTlsTarget(tempFolder(afterAll));
  clientHello = await captureClientHello();
  // The memory of the first crowd stays claimed, to be used again: growth counts from there.
  for (let i = 0; i < strangersMax; i++) target.dial().say(clientHello);
  await target.expectUnharmed();
  target.hangUpAll();
  await target.expectOnlyEdge(goneWithinMs);
  atStart = await target.state();
});

afterEach(async () => {
  target.hangUpAll();
  await target.expectUnharmed();
  await target.expectOnlyEdge(goneWithinMs);
});

afterAll(() => target.stop());

function record(type: number, payload: Uint8Array): Buffer {
  return Buffer.concat([Buffer.of(type, 3, 3, payload.length >> 8, payload.length & 255), payload]);
}

const closed = (socket: net.Socket) => socket.destroyed || once(socket, "close");

describe("instead of a handshake", () => {
  const changeCipherSpec = record(20, Buffer.of(1));
  const garbage: Record<string, () => Buffer | string> = {
    "random bytes": () => randomBytes(4096),
    "HTTP/1.1 in cleartext": () => verify,
    "HTTP/2 in cleartext": () => Buffer.concat([http2Hello(), getRequest(1, "/metrics")]),
    "a record of an unknown type": () => record(99, Buffer.alloc(100)),
    "a record that is too long": () => record(22, Buffer.alloc(65_535)),
    "an alert": () => record(21, Buffer.of(2, 40)),
    "empty records without end": () => Buffer.concat(Array(10_000).fill(record(22, Buffer.alloc(0)))),
    "changes of the cipher without end": () => Buffer.concat(Array(10_000).fill(changeCipherSpec)),
    "data before there are keys": () => Buffer.concat([clientHello, record(23, randomBytes(1000))]),
    "the same hello twice": () => Buffer.concat([clientHello, clientHello]),
    "a hello with random content": () => Buffer.concat([clientHello.subarray(0, 60), randomBytes(1500)]),
    "a hello for 1 GB": () => record(22, Buffer.concat([Buffer.of(1, 255, 255, 255), Buffer.alloc(16_000)])),
  };

  it.each(Object.keys(garbage))(
    "%s costs the client its connection, and nothing is said in cleartext",
    async (name) => {
      const socket = target.dial().say(garbage[name]?.() ?? "");
      await socket.closed;
      expect(socket.heard.toString("latin1")).not.toMatch(/HTTP\/|"error"/);
    },
  );
});

if (isDeep) {
  describe("a client that falls silent", () => {
    it("is disconnected, before, during and after its handshake", async () => {
      const silent = [
        target.dial(),
        target.dial().say(clientHello.subarray(0, 3)),
        target.dial().say(clientHello.subarray(0, 700)),
        target.dial().say(clientHello),
      ];
      const [idle, halfPreface, noSettings, halfHead] = await Promise.all(
        Array.from({ length: 4 }, async () => (await target.dialSecured()).secured),
      );
      halfPreface?.write(preface.subarray(0, 12));
      noSettings?.write(preface);
      halfHead?.write(verify.slice(0, 30));
      await Promise.all(silent.map((socket) => socket.closed));
      for (const secured of [idle, halfPreface, noSettings, halfHead]) if (secured) await closed(secured);
    });

    it("gets no more time for its handshake if it sends a byte at a time", async () => {
      const socket = target.dial();
      await socket.trickle(clientHello, 40);
      expect(socket.heard).toHaveLength(0);
    });
  });
}

describe.each(["politely", "abruptly"] as const)("a client that hangs up %s", (how) => {
  it("after any number of bytes of its hello causes no error", async () => {
    const lengths = Array.from({ length: 100 }, (_, i) => Math.ceil((i * clientHello.length) / 99));
    const sockets = lengths.map((length) => target.dial().say(clientHello.subarray(0, length)));
    for (const [i, socket] of sockets.entries()) setTimeout(() => socket.hangUp(how), i % 7);
    await Promise.all(sockets.map((socket) => socket.closed));
  });

  it("after its handshake, or while its answer is being sent, causes no error", async () => {
    for (let round = 0; round < 20; round++) {
      const { secured, raw } = await target.dialSecured();
      if (round % 2) secured.write(Buffer.concat([http2Hello(), getRequest(1, "/metrics")]));
      setTimeout(() => (how === "politely" ? raw.destroy() : raw.resetAndDestroy()), round % 5);
      await closed(raw);
    }
  });
});

describe("after a handshake", () => {
  it("bytes that are no record of TLS cost the client its connection", async () => {
    const { secured, raw } = await target.dialSecured();
    secured.write(Buffer.concat([http2Hello(), getRequest(1, "/metrics")]));
    raw.write(randomBytes(500));
    await closed(raw);
  });

  it("a client that has not asked for HTTP/2 in the handshake is answered over HTTP/1.1", async () => {
    const { secured } = await target.dialSecured([]);
    let heard = "";
    secured.on("data", (chunk) => {
      heard += chunk;
    });
    secured.write(Buffer.concat([http2Hello(), getRequest(1, "/metrics")]));
    await closed(secured);
    expect(heard).toMatch(/^HTTP\/1\.1 400/);
  });

  it("a client that sends little but new keys is disconnected", async () => {
    const args = ["s_client", "-connect", `127.0.0.1:${target.port}`, "-tls1_3", "-alpn", "h2"];
    const client = spawn(shellProgram("openssl"), args, { stdio: "pipe" });
    client.stdin.on("error", () => {});
    let updates = 0;
    // It takes one command each time it reads; a line that is none is sent to the server.
    const update = () => void client.stdin.write("K\n");
    client.stderr.on("data", (chunk) => {
      const more = String(chunk).split("KEYUPDATE").length - 1;
      updates += more;
      if (more > 0) update();
    });
    let said = Buffer.alloc(0);
    client.stdout.on("data", (chunk: Buffer) => {
      if (said.includes(settingsAck)) return;
      said = Buffer.concat([said, chunk]);
      // The server has got the hello: the client reads a command by itself.
      if (said.includes(settingsAck)) update();
    });
    client.stdin.write(http2Hello());
    await once(client, "exit");
    expect(updates * keyUpdateBytes).toBeGreaterThan(60_000);
  });
});

describe("more strangers than there is room for", () => {
  it("do not keep out a client that has the secret, nor an edge's stream", async () => {
    const strangers = await Promise.all(
      Array.from({ length: strangersMax + 50 }, async () => {
        // The first of them may be gone before their handshake.
        const dialled = await target.dialSecured().catch(() => undefined);
        dialled?.secured.write(http2Hello());
        return dialled?.secured;
      }),
    );
    await target.expectUnharmed();
    // The edge's own is one more; the one of the last question may still be there.
    expect((await target.state()).connections).toBeLessThanOrEqual(strangersMax + 2);
    expect(strangers.filter((socket) => socket?.destroyed ?? true).length).toBeGreaterThan(0);
    for (const socket of strangers) socket?.destroy();
  });
});

if (isDeep) {
  describe("after all of it", () => {
    it("the process has kept nothing of it", async () => {
      const { rssBytes, heapBytes } = await target.state();
      expect(rssBytes - atStart.rssBytes).toBeLessThan(50 * megabyte);
      expect(heapBytes - atStart.heapBytes).toBeLessThan(5 * megabyte);
    });
  });
}
