import { once } from "node:events";
import net from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { afterEach, beforeEach, expect, it, onTestFinished, vi } from "vitest";
import { ask, listen, severalTurns, until } from "./served-connection.ts";

/* How much a connection of HTTP/1.1 may hold and do, and for how long. Its time is counted in sweeps, which the test makes. */

beforeEach(() => void vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] }));
afterEach(() => void vi.useRealTimers());

const pass = (ms: number) => void vi.advanceTimersByTime(ms);

/** Time passes until this holds. */
const passUntil = (condition: () => boolean) =>
  until(() => {
    pass(20);
    return condition();
  });

it("stops reading while its answers are not taken, and goes on when they are", async () => {
  const { socket, served, hear, answers } = await listen();
  const lump = ask("k").repeat(100);
  let lumps = 0;
  const isRead = () => served()?.bytesRead === lumps * lump.length;
  // One by one, so that each arrives in one piece.
  do {
    socket.write(lump);
    lumps++;
    while (!isRead() && !(served()?.isPaused() && served()?.writableLength)) await delay(1);
  } while (isRead() && lumps < 2000);
  expect(lumps).toBeLessThan(2000);
  expect(served()?.writableLength).toBeLessThan(100_000);
  hear();
  await until(() => answers() === lumps * 100);
});

it("stops reading while too much waits behind a request", async () => {
  const { socket, served, held, hear, answers } = await listen();
  hear();
  const requests = 10_000;
  socket.write(ask("later_a"));
  for (let i = 0; i < requests; i += 100) socket.write(ask("k").repeat(100));
  await until(() => held.length === 1);
  await until(() => served()?.isPaused() === true);
  expect(served()?.bytesRead).toBeLessThan(500_000);
  held[0]?.answer();
  await until(() => answers() === requests + 1);
});

it("is ended when it has been silent for too long, but not while it waits for our answer", async () => {
  const { port, socket, held, hear, answered } = await listen({ headersMs: 20, keepAliveMs: 100 });
  hear();
  socket.write(ask("later_a"));
  await until(() => held.length === 1);
  pass(300);
  held[0]?.answer();
  await until(() => answered().length === 1);
  await passUntil(() => port.connections === 0);
});

it("is not ended while requests come", async () => {
  const { socket, hear, answered } = await listen({ headersMs: 20, keepAliveMs: 300 });
  hear();
  for (let i = 1; i <= 12; i++) {
    pass(50);
    socket.write(ask("a"));
    await until(() => answered().length === i);
  }
});

it("is ended when it does not take its answers", async () => {
  const { port, socket } = await listen({ headersMs: 20, answerMs: 100 });
  for (let i = 0; i < 1000; i++) socket.write(ask("k").repeat(100));
  await until(() => port.connections === 1);
  await passUntil(() => port.connections === 0);
});

it("answers nothing more once it has gone", async () => {
  const { port, socket, held, hear } = await listen();
  hear();
  socket.write(ask("later_a") + ask("later_b"));
  await until(() => held.length === 1);
  socket.resetAndDestroy();
  await until(() => port.connections === 0);
  held[0]?.answer();
  await severalTurns();
  expect(held.length).toBe(1);
});

it("gives others their turn while one connection has thousands of requests", async () => {
  const { port, socket, hear, answered } = await listen();
  hear();
  socket.write(ask("k").repeat(5000));
  await until(() => answered().length > 0);
  const other = net.connect((socket.remotePort as number) ?? 0, "127.0.0.1");
  onTestFinished(() => void other.destroy());
  other.write(ask("o"));
  await once(other, "data");
  expect(port.connections).toBe(2);
  await until(() => answered().length === 5000);
});

it("executes nothing that waits for its turn once the client has gone", async () => {
  const { port, socket, readBy } = await listen();
  socket.write(ask("k").repeat(20_000));
  await until(() => readBy.length > 0);
  socket.resetAndDestroy();
  await until(() => port.connections === 0);
  const executed = readBy.length;
  await severalTurns();
  expect(readBy.length).toBe(executed);
});

it.each([
  [
    "by Node, whose body stays half sent",
    "POST /other HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n",
  ],
  ["by hand, whose body stays half sent", ask("a").slice(0, -1)],
])("is closed after the refusal of a request %s, also where its client does not close", async (_, request) => {
  const { port, socket, hear, heard } = await listen({ headersMs: 20, requestMs: 100 });
  socket.allowHalfOpen = true;
  hear();
  socket.write(request);
  await passUntil(() => heard().includes("400 Bad Request"));
  await passUntil(() => port.connections === 0);
});

it("measures the time of each request that comes in pieces separately", async () => {
  const { socket, served, hear, answered, heard } = await listen({ headersMs: 100, requestMs: 300 });
  hear();
  for (let i = 0; i < 10; i++) {
    // Each is half sent when the connections are swept.
    socket.write(ask("a").slice(0, -1));
    await until(() => served()?.bytesRead === (i + 1) * ask("a").length - 1);
    pass(130);
    socket.write(ask("a").slice(-1));
    await until(() => answered().length === i + 1 || heard().includes("400"));
  }
  expect(heard()).not.toContain("400");
  expect(answered()).toHaveLength(10);
});

it("is ended when it does not read its answers, also while it goes on sending", async () => {
  const { port, socket, served } = await listen({ headersMs: 20, answerMs: 200 });
  do {
    socket.write(ask("k").repeat(20));
    await delay(1);
  } while (served()?.writableLength === 0);
  await passUntil(() => {
    socket.write("P");
    return port.connections === 0;
  });
});

it("leaves a long body that comes in pieces to Node, whose bodies have a bound over all connections", async () => {
  const { socket, served, handed, hear, answers } = await listen();
  hear();
  const request = `POST /v1/keys.verifyKey HTTP/1.1\r\nHost: a\r\nContent-Length: 60000\r\n\r\n${"x".repeat(60_000)}`;
  socket.write(request.slice(0, 20_000));
  await until(() => handed.length === 1);
  expect(served()?.bytesRead).toBe(20_000);
  socket.write(request.slice(20_000));
  await until(() => answers() === 1);
});

it("drops what a client still sends after a refusal, and does not reset the connection", async () => {
  const { socket, served, hear, heard } = await listen();
  let failure: Error | undefined;
  socket.on("error", (error) => (failure = error));
  socket.allowHalfOpen = true;
  hear();
  const request = "FOO / HTTP/1.1\r\nHost: a\r\n\r\n";
  socket.write(request);
  await until(() => heard().includes("400 Bad Request"));
  for (let i = 1; i <= 5; i++) {
    socket.write("x");
    await until(() => served()?.bytesRead === request.length + i || failure !== undefined);
  }
  expect(failure).toBeUndefined();
  expect(served()?.destroyed).toBe(false);
});
