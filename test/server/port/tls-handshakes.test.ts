import { once } from "node:events";
import { readFileSync } from "node:fs";
import net from "node:net";
import tls from "node:tls";
import { afterAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { createLog } from "../../../src/ambient/log.ts";
import { createMetrics } from "../../../src/ambient/metrics.ts";
import { Secret } from "../../../src/domain/secret.ts";
import { defaultTimeouts } from "../../../src/server/port/connections.ts";
import { Guard } from "../../../src/server/port/guard.ts";
import { OnePort, type OnePortOptions } from "../../../src/server/port/one-port.ts";
import type { TlsOptions } from "../../../src/server/port/tls-handshakes.ts";
import { captureClientHello } from "../../faults/hostile/start-tls-target.ts";
import { isDeep, sized } from "../../support/deep.ts";
import { makeCertificate } from "../../support/make-certificate.ts";
import { tempFolder } from "../../support/temp-folder.ts";
import { TestClock } from "../../support/test-clock.ts";

const own = makeCertificate(tempFolder(afterAll), "port");
const ca = readFileSync(own.certificate, "utf8");
const secured: TlsOptions = { cert: ca, key: new Secret(readFileSync(own.key, "utf8")), versionMin: "TLSv1.2" };
const host = "127.0.0.1";
const clients = sized(150, 400);

/** However busy the machine is. */
const patient = { ...defaultTimeouts, firstBytesMs: 600_000, headersMs: 600_000, requestMs: 600_000 };

async function listen(options: Partial<OnePortOptions> = {}) {
  const guard = new Guard({ clock: new TestClock(), log: createLog("error", () => {}), metrics: createMetrics() });
  let failed = 0;
  const port = new OnePort({
    listener: (_, res) => void res.end("served"),
    malformed: () => "",
    guard,
    tls: secured,
    onHandshakeFailed: () => failed++,
    ...options,
  });
  onTestFinished(() => port.close(0));
  return { port: await port.listen(0, host), onePort: port, failed: () => failed };
}

async function get(port: number, options: tls.ConnectionOptions = {}): Promise<string> {
  const socket = tls.connect({ host, port, ca, ...options });
  socket.write("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  return (await socket.toArray()).join("");
}

/** Connections that have sent these bytes, and say no more. */
function dial(port: number, count: number, bytes: Buffer): net.Socket[] {
  return Array.from({ length: count }, () => {
    const socket = net.connect({ port, host });
    onTestFinished(() => void socket.destroy());
    socket.on("error", () => {});
    socket.resume().write(bytes);
    return socket;
  });
}

describe("handshakes", () => {
  it("of many clients at once all succeed, some in each turn", async () => {
    const { port, failed } = await listen({ timeouts: patient });
    const answers = await Promise.all(Array.from({ length: clients }, () => get(port)));
    expect(answers.filter((text) => text.endsWith("served"))).toHaveLength(clients);
    expect(failed()).toBe(0);
  });
});

if (!isDeep) {
  describe("handshakes", () => {
    it("that do not go on are given up for clients that wait", async () => {
      const { port, failed, onePort } = await listen({ timeouts: patient });
      dial(port, 512, await captureClientHello());
      await vi.waitFor(() => expect(onePort.connections).toBe(512));
      expect(await get(port)).toMatch(/served$/);
      await vi.waitFor(() => expect(failed(), "each is counted once").toBe(512 - onePort.connections));
      expect(onePort.connections, "the others wait on").toBeGreaterThan(400);
    });

    it("of clients that say nothing, or not all of their first message, hold up nobody", async () => {
      const { port, failed } = await listen({ timeouts: patient });
      dial(port, 300, Buffer.alloc(0));
      dial(port, 600, Buffer.of(22));
      dial(port, 600, (await captureClientHello()).subarray(0, 100));
      expect(await get(port)).toMatch(/served$/);
      expect(failed()).toBe(0);
    });

    it("have a time-out", async () => {
      const timeouts = { ...defaultTimeouts, headersMs: 20, firstBytesMs: 60 };
      const { port, onePort } = await listen({ timeouts });
      dial(port, 3, (await captureClientHello()).subarray(0, 40));
      dial(port, 3, Buffer.alloc(0));
      await vi.waitFor(() => expect(onePort.connections).toBe(6));
      await vi.waitFor(() => expect(onePort.connections).toBe(0));
    });

    it("do not begin beyond the bound on connections", async () => {
      let rejected = 0;
      const connectionLimit = { connectionsMax: 2, response: () => "never sent", onRejected: () => rejected++ };
      const { port, onePort } = await listen({ connectionLimit });
      const hello = await captureClientHello();
      dial(port, 2, hello);
      await vi.waitFor(() => expect(onePort.connections).toBe(2));
      const [third] = dial(port, 1, hello) as [net.Socket];
      let heard = 0;
      third.on("data", (chunk) => {
        heard += chunk.length;
      });
      await once(third, "close");
      expect([heard, rejected]).toEqual([0, 1]);
    });

    it("decide the protocol: h2 by ALPN only, and a client that offers neither is refused", async () => {
      const { port } = await listen();
      const alpnOf = async (ALPNProtocols?: string[]) => {
        const socket = tls.connect({ host, port, ca, ...(ALPNProtocols && { ALPNProtocols }) });
        onTestFinished(() => void socket.destroy());
        await once(socket, "secureConnect");
        return socket.alpnProtocol;
      };
      expect([await alpnOf(["http/1.1", "h2"]), await alpnOf(["http/1.1"]), await alpnOf()]).toEqual([
        "h2",
        "http/1.1",
        false,
      ]);
      await expect(alpnOf(["spdy/3"])).rejects.toThrow(/no application protocol/);
      const preface = tls.connect({ host, port, ca });
      preface.write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
      expect((await preface.toArray()).join(""), "HTTP/2 without ALPN").not.toMatch(/^\0/);
    });
  });
}
