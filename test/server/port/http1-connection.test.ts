import { once } from "node:events";
import net from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { expect, it, onTestFinished } from "vitest";
import { hotMethods } from "../../../gen/latchkey/v1/keys_hot.ts";
import { createLog } from "../../../src/ambient/log.ts";
import { createMetrics } from "../../../src/ambient/metrics.ts";
import type { Call, Endpoint } from "../../../src/rpc/call.ts";
import { JsonByHand } from "../../../src/rpc/hot/json-by-hand.ts";
import { defaultPatience, type Patience } from "../../../src/server/port/connections.ts";
import { Guard } from "../../../src/server/port/guard.ts";
import { OnePort } from "../../../src/server/port/one-port.ts";
import { TestClock } from "../../support/test-clock.ts";

/* What a connection does that is served by hand, with a method that answers when the test says so. */

const [verify] = hotMethods;

interface Held {
  readonly key: string;
  answer(): void;
}

async function listen(patience: Partial<Patience> = {}) {
  const held: Held[] = [];
  const handed: string[] = [];
  const ways: string[] = [];
  let ids = 0;
  const endpoint = { method: verify?.method, access: "public" } as unknown as Endpoint;
  let served: net.Socket | undefined;
  const byHand = new JsonByHand({
    endpoints: [endpoint],
    newRequestId: () => `req_${ids++}`,
    httpDate: () => "now",
    keepAliveMs: 75_000,
    runCall(call: Call) {
      const { key } = call.read() as unknown as { key: string };
      const response = { valid: true, code: "VALID", keyId: key, requestId: call.requestId };
      if (!key.startsWith("later")) return response;
      return new Promise((resolve) => held.push({ key, answer: () => resolve(response) }));
    },
  });
  const guard = new Guard({ clock: new TestClock(), log: createLog("error", () => {}), metrics: createMetrics() });
  const watch = guard.watch.bind(guard);
  guard.watch = (emitter) => {
    if (emitter instanceof net.Socket) served = emitter;
    watch(emitter);
  };
  const port = new OnePort({
    listener(req, res) {
      handed.push(req.url ?? "");
      if (req.url === "/later") {
        held.push({ key: "node", answer: () => void res.end("theirs") });
        return;
      }
      req.resume().on("end", () => res.end("theirs"));
    },
    malformed: () => "HTTP/1.1 400 Bad Request\r\n\r\n",
    guard,
    byHand,
    onHttp1Request: (way) => ways.push(way),
    patience: { ...defaultPatience, ...patience },
  });
  onTestFinished(() => port.close(0));
  const socket = net.connect(await port.listen(0, "127.0.0.1"), "127.0.0.1");
  socket.on("error", () => {});
  onTestFinished(() => void socket.destroy());
  let heard = "";
  const hear = () => socket.setEncoding("latin1").on("data", (text: string) => (heard += text));
  /** The keys that were answered, in order. */
  const answered = () => [...heard.matchAll(/"keyId":"(\w+)"/g)].map(([, key]) => key);
  /** Whoever gave them: a request that does not arrive in one piece is handed over. */
  const answers = () => heard.split("HTTP/1.1 200 OK").length - 1;
  /** The server's end of the connection. */
  const end = () => served;
  return { port, socket, served: end, held, handed, ways, hear, answered, answers, heard: () => heard };
}

function ask(key: string): string {
  const body = JSON.stringify({ key });
  const head = `POST /v1/keys.verifyKey HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: ${body.length}`;
  return `${head}\r\n\r\n${body}`;
}

const until = (condition: () => boolean) => expect.poll(condition, { interval: 10, timeout: 15_000 }).toBe(true);

it("answers in the order of the requests, also where one has to wait", async () => {
  const { socket, held, hear, answered } = await listen();
  hear();
  socket.write(ask("a") + ask("later_b") + ask("c"));
  await until(() => held.length === 1);
  socket.write(ask("later_d") + ask("e"));
  await until(() => answered().length === 1);
  held[0]?.answer();
  await until(() => held.length === 2 && answered().length === 3);
  held[1]?.answer();
  await until(() => answered().length === 5);
  expect(answered()).toEqual(["a", "later_b", "c", "later_d", "e"]);
});

it("lends Node what is not supported, behind its own answers, and reads on behind that", async () => {
  const { socket, held, handed, hear, answered, heard } = await listen();
  hear();
  socket.write(`${ask("later_a")}GET /other HTTP/1.1\r\nHost: a\r\n\r\n`);
  await until(() => held.length === 1);
  socket.write(ask("b"));
  await delay(20);
  expect(handed).toEqual([]);
  held[0]?.answer();
  await until(() => answered().length === 2);
  expect(handed).toEqual(["/other"]);
  expect(answered()).toEqual(["later_a", "b"]);
  expect(heard().indexOf("theirs")).toBeGreaterThan(heard().indexOf("later_a"));
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
    for (let waits = 0; waits < 100 && !isRead(); waits++) await delay(2);
  } while (isRead() && lumps < 2000);
  expect(lumps).toBeLessThan(2000);
  expect(served()?.writableLength).toBeLessThan(100_000);
  hear();
  await until(() => answers() === lumps * 100);
}, 30_000);

it("stops reading while too much waits behind a request", async () => {
  const { socket, served, held, hear, answers } = await listen();
  hear();
  const requests = 40_000;
  socket.write(ask("later_a"));
  for (let i = 0; i < requests; i += 100) socket.write(ask("k").repeat(100));
  await until(() => held.length === 1);
  await delay(200);
  expect(served()?.bytesRead).toBeLessThan(500_000);
  held[0]?.answer();
  await until(() => answers() === requests + 1);
}, 30_000);

it("is ended when it has been silent for too long, but not while it waits for us", async () => {
  const { socket, held, hear, answered } = await listen({ headersMs: 20, keepAliveMs: 100 });
  hear();
  socket.write(ask("later_a"));
  await until(() => held.length === 1);
  await delay(300);
  held[0]?.answer();
  await until(() => answered().length === 1);
  await once(socket, "close");
});

it("is not ended while requests come", async () => {
  const { socket, hear, answered } = await listen({ headersMs: 20, keepAliveMs: 300 });
  hear();
  for (let i = 0; i < 12; i++) {
    socket.write(ask("a"));
    await delay(50);
  }
  await until(() => answered().length === 12);
});

it("is ended when it does not take its answers", async () => {
  const { port, socket } = await listen({ headersMs: 20, answerMs: 100 });
  for (let i = 0; i < 1000; i++) socket.write(ask("k").repeat(100));
  await until(() => port.connections === 1);
  await until(() => port.connections === 0);
});

it("tells its last answer for such, once the server is closing", async () => {
  const { port, socket, held, hear, heard } = await listen();
  hear();
  socket.write(ask("later_a"));
  await until(() => held.length === 1);
  const closed = port.close(5000);
  held[0]?.answer();
  await once(socket, "close");
  await closed;
  expect(heard()).toMatch(/^HTTP\/1\.1 200 OK\r\n.*\r\nConnection: close\r\n\r\n\{/s);
});

it("answers nothing more once it has gone", async () => {
  const { port, socket, held, hear } = await listen();
  hear();
  socket.write(ask("later_a") + ask("later_b"));
  await until(() => held.length === 1);
  socket.resetAndDestroy();
  await until(() => port.connections === 0);
  held[0]?.answer();
  await delay(20);
  expect(held.length).toBe(1);
});

it("serves by hand what arrives in pieces, however they are cut", async () => {
  const { socket, handed, hear, answered } = await listen();
  hear();
  const whole = ask("a");
  for (let at = 1; at < whole.length; at += 7) {
    socket.write(whole.slice(0, at));
    await delay(1);
    socket.write(whole.slice(at) + ask("b").slice(0, 40));
    await delay(1);
    socket.write(ask("b").slice(40));
    const answers = 2 * Math.ceil(at / 7);
    await until(() => answered().length === answers);
  }
  expect(handed).toEqual([]);
});

it("gives Node what arrives in pieces and is not supported when it is whole", async () => {
  const { socket, handed, hear, answered } = await listen();
  hear();
  const other = "POST /other HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello";
  for (const piece of [other.slice(0, 30), other.slice(30, -2), other.slice(-2) + ask("b")]) {
    socket.write(piece);
    await delay(5);
  }
  await until(() => answered().length === 1);
  expect(handed).toEqual(["/other"]);
});

it("leaves the connection to Node where the end of a request is for Node to find", async () => {
  const { socket, handed, hear, answers } = await listen();
  hear();
  const chunked = "POST /other HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
  socket.write(chunked + ask("a"));
  await until(() => answers() === 2);
  socket.write(ask("b"));
  await until(() => answers() === 3);
  expect(handed).toEqual(["/other", "/v1/keys.verifyKey", "/v1/keys.verifyKey"]);
});

it("answers whole requests of a client that sends no more", async () => {
  const { socket, held, handed, hear, answered } = await listen();
  hear();
  socket.end(`${ask("later_a")}GET /other HTTP/1.1\r\nHost: a\r\n\r\n${ask("b")}`);
  await until(() => held.length === 1);
  await delay(20);
  held[0]?.answer();
  await once(socket, "close");
  expect(answered()).toEqual(["later_a", "b"]);
  expect(handed).toEqual(["/other"]);
});

it.each([
  ["by hand", () => ask("later_a")],
  ["by Node", () => "GET /later HTTP/1.1\r\nHost: a\r\n\r\n"],
  [
    "by Node, which reads everything",
    () => "GET /later HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
  ],
])("executes nothing behind an answer %s that ends the connection", async (_, first) => {
  const { port, socket, held, handed, hear, heard } = await listen();
  hear();
  socket.write(first() + ask("later_b") + ask("c"));
  await until(() => held.length === 1);
  const closed = port.close(5000);
  held[0]?.answer();
  await once(socket, "close");
  await closed;
  expect(held).toHaveLength(1);
  expect(handed.length).toBeLessThan(2);
  expect(heard().match(/connection: close/gi)).toHaveLength(1);
  expect(heard().match(/HTTP\/1\.1 200/g)).toHaveLength(1);
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

it("tells how each request was read, and why Node read it", async () => {
  const { socket, ways, hear, answers } = await listen();
  hear();
  const asked = [
    ask("a"),
    "GET /other HTTP/1.1\r\nHost: a\r\n\r\n",
    ask("a").replace("Host: a", "Host: a\r\nConnection: x"),
    ask("a").replace('"key"', '"kex"'),
    ask("b"),
    ask("a")
      .replace(/Content-Length: \d+/, "Transfer-Encoding: chunked")
      .replace(/\{.*/, "0\r\n\r\n"),
    ask("c"),
  ];
  for (const [index, text] of asked.entries()) {
    socket.write(text);
    await until(() => answers() === index + 1);
  }
  expect(ways).toEqual(["by_hand", "node_path", "node_head", "node_body", "by_hand", "node_framing", "node_framing"]);
});

it("executes nothing that waits for its turn once the client has gone", async () => {
  const { port, socket, ways } = await listen();
  socket.write(ask("k").repeat(20_000));
  await until(() => ways.length > 0);
  socket.resetAndDestroy();
  await until(() => port.connections === 0);
  const executed = ways.length;
  await delay(20);
  expect(ways.length).toBe(executed);
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
  await until(() => heard().includes("400 Bad Request"));
  await until(() => port.connections === 0);
});

it("counts the time of each request that comes in pieces by itself", async () => {
  const { socket, hear, answered, heard } = await listen({ headersMs: 100, requestMs: 300 });
  hear();
  for (let i = 0; i < 10; i++) {
    // Each is half sent when the connections are swept.
    socket.write(ask("a").slice(0, -1));
    await delay(130);
    socket.write(ask("a").slice(-1));
    await until(() => answered().length === i + 1 || heard().includes("400"));
  }
  expect(heard()).not.toContain("400");
  expect(answered()).toHaveLength(10);
});

it("is ended when it does not take its answers, also where it goes on to send", async () => {
  const { port, socket, served } = await listen({ headersMs: 20, answerMs: 200 });
  do {
    socket.write(ask("k").repeat(20));
    await delay(1);
  } while (served()?.writableLength === 0);
  const dribble = setInterval(() => socket.write("P"), 50);
  onTestFinished(() => clearInterval(dribble));
  await until(() => port.connections === 0);
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

const upgrade = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAEAAEAAAAIAAAAB\r\n";

it.each([
  ["without a body", `GET /other HTTP/1.1\r\nHost: a\r\n${upgrade}\r\n`],
  ["with a body", `POST /other HTTP/1.1\r\nHost: a\r\n${upgrade}Content-Length: 5\r\n\r\nhello`],
])("answers what follows a request %s that asks for an upgrade", async (_, request) => {
  const { socket, ways, hear, answers } = await listen();
  hear();
  socket.write(request + ask("a") + request + request + ask("b"));
  await until(() => answers() === 5);
  expect(ways).toEqual(["node_path", "by_hand", "node_path", "node_path", "by_hand"]);
});

it("ends the connection behind a request that asks for an upgrade where Node reads everything", async () => {
  const { socket, handed, hear, heard } = await listen();
  hear();
  const chunked = "POST /other HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
  socket.write(`${chunked}GET /upgrade HTTP/1.1\r\nHost: a\r\n${upgrade}\r\n${ask("a").repeat(20)}`);
  await once(socket, "close");
  expect(handed).toEqual(["/other", "/upgrade"]);
  expect(heard().match(/HTTP\/1\.1 200/g)).toHaveLength(2);
  expect(heard()).toMatch(/connection: close/i);
});
