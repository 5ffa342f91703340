import { fork } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import http2 from "node:http2";
import https from "node:https";
import net from "node:net";
import { join } from "node:path";
import tls from "node:tls";
import { expect, vi } from "vitest";
import { type Certificate, makeCertificate } from "../../support/make-certificate.ts";
import { RawSocket } from "./raw-socket.ts";
import type { TlsTargetState } from "./tls-target.ts";

export type TlsTarget = Awaited<ReturnType<typeof startTlsTarget>>;

/** A target that was harmed serves after a time-out of many seconds, or never. */
const servedWithinMs = 10_000;
const secret = "shared-secret-of-the-test-0123456789";
const authorization = `Bearer ${secret}`;

/** The internal port over TLS in a process of its own, with an edge's stream that stays open all the time. */
export async function startTlsTarget(folder: string) {
  const own: Certificate = makeCertificate(folder, "target");
  const ca = readFileSync(own.certificate, "utf8");
  const program = join(import.meta.dirname, "tls-target.ts");
  const child = fork(program, [own.certificate, own.key, secret], { execArgv: ["--expose-gc"] });
  const ended = once(child, "exit").then(([code, signal]) => expect.fail(`the target has ended: ${code ?? signal}`));
  ended.catch(() => {});
  const nextMessage = async <Message>() => {
    const received = new Promise<Message>((resolve) => child.once("message", resolve as () => void));
    return Promise.race([received, ended]);
  };
  const { port } = await nextMessage<{ port: number }>();
  const host = "127.0.0.1";

  const edge = http2.connect(`https://${host}:${port}`, { ca });
  const edgeStream = edge.request({ ":path": "/stream", authorization });
  edgeStream.on("error", () => {});
  edge.on("error", () => {});
  await once(edgeStream, "data");

  async function state(): Promise<TlsTargetState> {
    child.send("state");
    return (await nextMessage<{ state: TlsTargetState }>()).state;
  }

  async function getMetrics(): Promise<number | undefined> {
    const req = https.get({ host, port, ca, path: "/metrics", headers: { authorization }, agent: false });
    const [res] = (await once(req, "response")) as [import("node:http").IncomingMessage];
    res.resume();
    await once(res, "end");
    return res.statusCode;
  }

  const sockets: RawSocket[] = [];
  return {
    port,
    state,
    /** A new connection without a handshake. */
    dial(): RawSocket {
      const socket = new RawSocket(port);
      sockets.push(socket);
      return socket;
    },
    /** A new connection whose handshake is complete, and the connection below it. */
    async dialSecured(ALPNProtocols: string[] = ["h2"]): Promise<{ secured: tls.TLSSocket; raw: net.Socket }> {
      const raw = net.connect(port, host);
      const secured = tls.connect({ socket: raw, ca, host, ALPNProtocols });
      for (const socket of [raw, secured]) socket.on("error", () => {});
      secured.resume();
      await once(secured, "secureConnect");
      return { secured, raw };
    },
    /** Fails unless the process lives, serves in time, kept the edge's stream, and has complained of nothing. */
    async expectUnharmed(): Promise<void> {
      const startedMs = performance.now();
      expect(await getMetrics()).toBe(200);
      expect(performance.now() - startedMs).toBeLessThan(servedWithinMs);
      expect(edgeStream.closed || edge.closed).toBe(false);
      expect(await state()).toMatchObject({ complaints: [], servingFailures: 0 });
    },
    /** Resolves once only the edge's connection is left. */
    async expectOnlyEdge(withinMs: number): Promise<void> {
      await vi.waitFor(async () => expect((await state()).connections).toBe(1), { timeout: withinMs, interval: 25 });
    },
    hangUpAll(): void {
      for (const socket of sockets.splice(0)) socket.hangUp();
    },
    stop(): void {
      edge.destroy();
      child.disconnect();
    },
  };
}

/** The first message of a client, as Node sends it. */
export async function captureClientHello(): Promise<Buffer> {
  const server = net.createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as net.AddressInfo;
  const client = tls.connect({ port, host: "127.0.0.1", ALPNProtocols: ["h2"] }).on("error", () => {});
  const [socket] = (await once(server, "connection")) as [net.Socket];
  const [hello] = (await once(socket, "data")) as [Buffer];
  client.destroy();
  socket.destroy();
  server.close();
  return hello;
}
