import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { expect, it } from "vitest";
import { ask, listen, severalTurns, until } from "./served-connection.ts";

/* What a connection of HTTP/1.1 answers, and how it has read the request. */

const long = ask("k".repeat(16_384));
const upgrade = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAEAAEAAAAIAAAAB\r\n";

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

it("gives Node an unsupported request after its own answers, and all that follow", async () => {
  const { socket, served, held, handed, hear, answered, answers, heard } = await listen();
  hear();
  const first = `${ask("later_a")}GET /other HTTP/1.1\r\nHost: a\r\n\r\n`;
  socket.write(first);
  await until(() => held.length === 1);
  socket.write(ask("b"));
  await until(() => served()?.bytesRead === first.length + ask("b").length);
  await severalTurns();
  expect(handed).toEqual([]);
  held[0]?.answer();
  await until(() => answers() === 3);
  expect(handed).toEqual(["/other", "/v1/keys.verifyKey"]);
  expect(answered()).toEqual(["later_a"]);
  expect(heard().indexOf("theirs")).toBeGreaterThan(heard().indexOf("later_a"));
});

it("answers requests without a body between others, and keeps the connection", async () => {
  const { socket, handed, readBy, hear, answers, answered, heard } = await listen();
  hear();
  const page = "GET /page HTTP/1.1\r\nHost: a\r\n\r\n";
  socket.write(ask("a") + page + page.replace("GET", "HEAD") + page.replace("/page", "/nothing") + ask("b"));
  await until(() => answered().length === 2);
  expect(answers()).toBe(4);
  expect(heard().match(/HTTP\/1\.1 404/g)).toHaveLength(1);
  expect(heard().match(/\r\n\r\n\{\}/g)).toHaveLength(1);
  expect(handed).toEqual([]);
  expect(new Set(readBy)).toEqual(new Set(["by_hand"]));
});

it.each([
  ["by hand", () => ask("a").replace("Host", "Connection: close\r\nHost")],
  ["by Node", () => "GET /other HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"],
])("ends the connection after a request %s that asks for it, and drops what follows", async (_, request) => {
  const { socket, readBy, hear, heard } = await listen();
  hear();
  socket.write(request() + ask("b").repeat(200));
  await once(socket, "close");
  expect(heard().match(/HTTP\/1\.1 200/g)).toHaveLength(1);
  expect(heard().match(/connection: close/gi)).toHaveLength(1);
  expect(readBy).toHaveLength(1);
});

it("marks its last answer as the last, once the server is closing", async () => {
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

it("gives Node an unsupported request that arrives in pieces", async () => {
  const { socket, handed, hear, answers } = await listen();
  hear();
  const other = "POST /other HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello";
  for (const piece of [other.slice(0, 30), other.slice(30, -2), other.slice(-2) + ask("b")]) {
    socket.write(piece);
    await delay(5);
  }
  await until(() => answers() === 2);
  expect(handed).toEqual(["/other", "/v1/keys.verifyKey"]);
});

it("leaves the connection to Node if only Node can find the end of a request", async () => {
  const { socket, handed, hear, answers } = await listen();
  hear();
  const chunked = "POST /other HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
  socket.write(chunked + ask("a"));
  await until(() => answers() === 2);
  socket.write(ask("b"));
  await until(() => answers() === 3);
  expect(handed).toEqual(["/other", "/v1/keys.verifyKey", "/v1/keys.verifyKey"]);
});

it("answers complete requests of a client that has closed its side", async () => {
  const { socket, held, handed, hear, answered, answers } = await listen();
  hear();
  socket.end(`${ask("later_a")}${ask("b")}GET /other HTTP/1.1\r\nHost: a\r\n\r\n${ask("c")}`);
  await until(() => held.length === 1);
  await delay(20);
  held[0]?.answer();
  await once(socket, "close");
  expect(answered()).toEqual(["later_a", "b"]);
  expect(answers()).toBe(4);
  expect(handed).toEqual(["/other", "/v1/keys.verifyKey"]);
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

it.each([
  ["node_path", ["GET /other HTTP/1.1\r\nHost: a\r\n\r\n"]],
  ["node_head", [ask("a").replace("Host: a", "Host: a\r\nConnection: x")]],
  ["node_body", [long.slice(0, 200), long.slice(200)]],
  [
    "node_framing",
    [
      ask("a")
        .replace(/Content-Length: \d+/, "Transfer-Encoding: chunked")
        .replace(/\{.*/, "0\r\n\r\n"),
    ],
  ],
])("counts how each request was read, and why Node reads them: %s", async (why, pieces) => {
  const { socket, served, readBy, hear, answers } = await listen();
  hear();
  let written = 0;
  for (const [index, text] of [ask("a"), ask("a", '{"key":"\\u0061"}'), pieces, ask("b"), ask("c")].entries()) {
    for (const piece of [text].flat()) {
      socket.write(piece);
      written += piece.length;
      await until(() => served()?.bytesRead === written);
    }
    await until(() => answers() === index + 1);
  }
  expect(readBy).toEqual(["by_hand", "by_hand", why, why, why]);
});

it("answers by hand, in its turn, a body that the codec does not understand", async () => {
  const { socket, handed, hear, answered, heard } = await listen();
  hear();
  socket.write(ask("a") + ask("", '{"key":"\\u0062"}') + ask("", '{"kex":"c"}') + ask("", "") + ask("d"));
  await until(() => answered().length === 3);
  expect(answered()).toEqual(["a", "b", "d"]);
  expect(heard().match(/HTTP\/1\.1 \d+/g)).toEqual([200, 200, 400, 400, 200].map((status) => `HTTP/1.1 ${status}`));
  expect(handed).toEqual([]);
});

it("passes over the wish for an upgrade, as of Java's client in every request", async () => {
  const { socket, readBy, hear, answers } = await listen();
  hear();
  const page = `GET /page HTTP/1.1\r\nHost: a\r\n${upgrade}\r\n`;
  const call = ask("a").replace("Host: a\r\n", `Host: a\r\n${upgrade}`);
  socket.write(page + ask("a") + call + call + page + ask("b"));
  await until(() => answers() === 6);
  expect(new Set(readBy)).toEqual(new Set(["by_hand"]));
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

it("reads on after a request that Node has answered before it was complete", async () => {
  const { socket, handed, hear, heard, answers } = await listen();
  hear();
  const other = "POST /early HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello";
  socket.write(other.slice(0, -3));
  await until(() => heard().endsWith("early"));
  socket.write(other.slice(-3) + ask("b"));
  await until(() => answers() === 2);
  expect(handed).toEqual(["/early", "/v1/keys.verifyKey"]);
});
