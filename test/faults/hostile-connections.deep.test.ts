import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { startTestServer } from "../support/in-process-server.ts";
import { verify } from "./hostile/http1-cases.ts";
import {
  endStream,
  frame,
  frameType,
  getRequest,
  hello,
  openRequest,
  parseFrames,
  preface,
  verifyHeaders,
} from "./hostile/http2-frames.ts";
import { RawSocket } from "./hostile/raw-socket.ts";
import { startTarget, type Target } from "./hostile/start-target.ts";
import type { TargetState } from "./hostile/target.ts";

/* Connections as no honest client makes them, against a process with little patience (see hostile/target.ts). */

const megabyte = 1024 * 1024;
/** Longer than the target waits for anything, several waits in a row included. */
const goneWithinMs = 8000;

let target: Target;
let atStart: TargetState;
const dial = () => target.dial();

/** 50 connections with the 100 streams each that they may have, none of which ever gets its body. */
function openHalf5000(): RawSocket[] {
  const opened = Buffer.concat(Array.from({ length: 100 }, (_, index) => openRequest(2 * index + 1)));
  return Array.from({ length: 50 }, () => dial().say(hello()).say(opened));
}

beforeAll(async () => {
  target = await startTarget();
  // The engine keeps memory that it once used for 5000 streams, to use it again: growth counts from there.
  for (let wave = 0; wave < 3; wave++) {
    openHalf5000();
    await target.expectUnharmed();
    target.hangUpAll();
    await target.expectNoConnections(goneWithinMs);
  }
  atStart = await target.state();
});

async function expectNothingLeft(): Promise<void> {
  target.hangUpAll();
  await target.expectUnharmed();
  await target.expectNoConnections(goneWithinMs);
}

// Tests that run at once have the target in common until the last of them is over.
afterEach(({ task }) => (task.concurrent ? undefined : expectNothingLeft()));

afterAll(() => target.stop());

describe("over HTTP/2", () => {
  it("5000 streams that stay incomplete are ended", async () => {
    const crowd = openHalf5000();
    await target.expectUnharmed();
    await Promise.all(crowd.map(({ closed }) => closed));
    for (const { heard } of crowd) {
      expect(parseFrames(heard).filter(({ type }) => type === frameType.rstStream)).toHaveLength(100);
    }
  });
});

describe("a client that takes its time", () => {
  afterAll(expectNothingLeft);

  const chunked = verify.replace(/Content-Length: \d+/, "Transfer-Encoding: chunked");
  const headersOf2 = openRequest(1);
  const bodyOf2 = frame(frameType.data, 0, 1, Buffer.alloc(300, "x"));
  const questions = Buffer.concat(
    Array.from({ length: 100 }, (_, index) => getRequest(2 * index + 1, "/openapi.json")),
  );

  const silences: Record<string, (socket: RawSocket) => unknown> = {
    "before it says anything": () => {},
    "after half a preface": (socket) => socket.say(preface.subarray(0, 12)),
    "within the headers": (socket) => socket.say(verify.slice(0, 30)),
    "within the body": (socket) => socket.say(verify.slice(0, -3)),
    "within a chunk": (socket) => socket.say(chunked.replace(/\{.*$/, '5\r\n{"k')),
    "after the preface": (socket) => socket.say(preface),
    "after the settings": (socket) => socket.say(hello()),
    "within the headers of HTTP/2": (socket) => socket.say(hello()).say(frame(frameType.headers, 0, 1)),
    "within a frame of HTTP/2": (socket) => socket.say(hello()).say(headersOf2.subarray(0, 15)),
    "within the body of HTTP/2": (socket) => socket.say(hello()).say(headersOf2),
    "taking its answers": (socket) => socket.deafen().say("GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n".repeat(2000)),
    "taking its answers over HTTP/2": (socket) => socket.say(hello([4, 0])).say(questions),
  };
  it("is disconnected if it falls silent, at any point", async () => {
    const silent = Object.entries(silences).map(([name, start]) => ({ name, socket: dial(), start }));
    for (const { socket, start } of silent) start(socket);
    const { length } = silent;
    await expect.poll(async () => (await target.state()).connections, { interval: 10 }).toBe(length);
    await target.expectNoConnections(goneWithinMs).catch(() => {});
    // A socket that does not read does not notice that it is closed.
    expect(
      silent.filter(({ name, socket }) => socket.open && name !== "taking its answers").map(({ name }) => name),
    ).toEqual([]);
    expect((await target.state()).connections).toBe(0);
  });

  it.concurrent("is disconnected if it sends a byte at a time, at any point", async () => {
    const startedMs = performance.now();
    await Promise.all([
      dial().trickle(verify, 40),
      dial()
        .say(verify.replace(/Length: \d+/, "Length: 1000"))
        .trickle("x".repeat(900), 40),
      dial().say(chunked.replace(/\{.*$/, "384\r\n")).trickle("x".repeat(900), 40),
      dial()
        .say(Buffer.concat([hello(), headersOf2]))
        .trickle(bodyOf2, 40),
    ]);
    expect(performance.now() - startedMs).toBeLessThan(goneWithinMs);
  });

  it.concurrent("gets no more time for the HTTP/2 preface if it sends it a byte at a time", async () => {
    const socket = dial();
    await socket.trickle(preface, 200);
    // The server would have sent its settings as soon as it had all of it.
    expect(socket.heard).toHaveLength(0);
  });

  it.concurrent("has less time for its settings than for its requests over HTTP/2", async () => {
    const [silent, settled] = [dial().say(preface), dial().say(hello())];
    await silent.closed;
    expect(settled.open).toBe(true);
  });

  it.concurrent("is told so over HTTP/1.1", async () => {
    const socket = dial().say(verify.slice(0, -3));
    await socket.closed;
    expect(socket.heard.toString()).toMatch(/^HTTP\/1\.1 400 .*did not arrive in time/s);
  });

  it.concurrent("may be silent while it watches our health", async () => {
    const watch = [
      ...verifyHeaders.slice(0, 2),
      [":authority", "x"],
      [":path", "/grpc.health.v1.Health/Watch"],
      ["content-type", "application/grpc"],
    ] as const;
    const socket = dial()
      .say(hello())
      .say(openRequest(1, watch))
      .say(frame(frameType.data, endStream, 1, Buffer.alloc(5)));
    await new Promise((resolve) => setTimeout(resolve, 3500));
    const types = parseFrames(socket.heard).map(({ type }) => type);
    expect(types).toContain(frameType.data);
    expect(types).not.toContain(frameType.rstStream);
    expect(socket.open).toBe(true);
  });
});

describe("a server that stops", () => {
  it("is not delayed by connections that have sent nothing, or half of the HTTP/2 preface", async () => {
    const { port, stop } = await startTestServer();
    const waiting = ["", "PRI * HTTP"].map((text) => new RawSocket(port).say(text));
    await fetch(`http://127.0.0.1:${port}/livez`);
    const startedMs = performance.now();
    await stop();
    expect(performance.now() - startedMs).toBeLessThan(2000);
    await Promise.all(waiting.map(({ closed }) => closed));
  });
});

describe("after all of it", () => {
  it("the process has kept nothing of it", async () => {
    const { rssBytes, heapBytes } = await target.state();
    expect(rssBytes - atStart.rssBytes).toBeLessThan(50 * megabyte);
    expect(heapBytes - atStart.heapBytes).toBeLessThan(5 * megabyte);
  });
});
