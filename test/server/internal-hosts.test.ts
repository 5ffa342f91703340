import { once } from "node:events";
import http2 from "node:http2";
import net from "node:net";
import { expect, it, onTestFinished } from "vitest";
import { Secret } from "../../src/domain/secret.ts";
import { sumMetric } from "../support/read-metric.ts";
import { startEmptyListener } from "./start-empty-listener.ts";

const secret = "shared-secret-of-the-test-0123456789";

async function startListener(secrets: readonly Secret[] = []) {
  const { listener, metrics } = await startEmptyListener({ secrets });
  const refused = async () => sumMetric(await metrics.render(), "latchkey_internal_refused_total");
  return { port: listener.port, refused };
}

/** Over HTTP/1.1: no client library would send these. */
async function get(port: number, lines: readonly string[], version = "1.1"): Promise<{ status: number; text: string }> {
  const socket = net.connect(port, "127.0.0.1");
  onTestFinished(() => void socket.destroy());
  socket.write([`GET /metrics HTTP/${version}`, ...lines, "Connection: close", "", ""].join("\r\n"));
  const text = (await socket.toArray()).join("");
  return { status: Number(text.split(" ")[1]), text };
}

async function getOver2(port: number, headers: http2.OutgoingHttpHeaders) {
  const session = http2.connect(`http://127.0.0.1:${port}`);
  onTestFinished(() => session.destroy());
  const stream = session.request({ ":path": "/metrics", ...headers });
  const [answer] = (await once(stream, "response")) as [http2.IncomingHttpHeaders];
  const text = (await stream.toArray()).join("");
  return { status: answer[":status"], text };
}

const local = [
  "localhost",
  "LocalHost:8081",
  "localhost:1",
  "127.0.0.1",
  "127.0.0.1:8081",
  "127.8.9.10:80",
  "[::1]",
  "[::1]:8081",
  // As of a tunnel or a forwarded port.
  "10.0.0.1:9000",
];
const foreign = [
  "attacker.example",
  "attacker.example:8081",
  "localhost.attacker.example",
  "attacker-localhost",
  "127.0.0.1.attacker.example:8081",
  "[::1].attacker.example",
];

it.each(local)("the internal port without a secret is served as %s", async (host) => {
  const { port, refused } = await startListener();
  expect(await get(port, [`Host: ${host}`])).toMatchObject({ status: 200, text: expect.stringContaining("# HELP") });
  expect(await getOver2(port, { ":authority": host })).toMatchObject({ status: 200 });
  expect(await refused()).toBe(0);
});

it.each(foreign)(
  "a page that has its name resolve to this machine reads nothing of the internal port: %s",
  async (host) => {
    const { port, refused } = await startListener();
    const answers = [
      await get(port, [`Host: ${host}`]),
      await getOver2(port, { ":authority": host }),
      await getOver2(port, { ":authority": "localhost", host }),
    ];
    for (const { status, text } of answers) {
      expect(status).toBe(403);
      expect(text).toContain("served as localhost");
      expect(text).not.toContain(host);
    }
    expect(await refused()).toBe(answers.length);
  },
);

it("a scraper that speaks HTTP/1.0 and names no host is served", async () => {
  const { port } = await startListener();
  expect(await get(port, [], "1.0")).toMatchObject({ status: 200 });
});

it("no page of another origin may read an answer", async () => {
  const { port } = await startListener();
  const { text } = await get(port, ["Host: 127.0.0.1", "Origin: https://attacker.example"]);
  expect(text.toLowerCase()).not.toContain("access-control-");
});

it("with a secret, the internal port is served under any name", async () => {
  const { port } = await startListener([new Secret(secret)]);
  const host = "Host: metrics.example";
  expect(await get(port, [host, `Authorization: Bearer ${secret}`])).toMatchObject({ status: 200 });
  expect(await get(port, [host])).toMatchObject({ status: 401 });
});
