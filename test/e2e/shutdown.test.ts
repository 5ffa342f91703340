import { once } from "node:events";
import http from "node:http";
import http2, { type IncomingHttpHeaders } from "node:http2";
import net from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import { createClient as createConnectClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { describe, expect, it, vi } from "vitest";
import { Health, HealthCheckResponse_ServingStatus as Status } from "../../gen/health/v1/health_pb.js";
import { getRequest, hello } from "../faults/hostile/http2-frames.ts";
import { clientKinds, clientOf } from "../support/clients.ts";
import { isDeep, sized } from "../support/deep.ts";
import { type Engine, engines } from "../support/engines.ts";
import { type LatchkeyProcess, startLatchkey } from "../support/latchkey-process.ts";
import { type Book, callOverGrpc, callOverHttp1 } from "../support/persistent-callers.ts";
import { rawClient } from "../support/raw-client.ts";
import { tempFolder } from "../support/temp-folder.ts";
import { atTestEnd } from "../support/test-end.ts";
import { testRootKey } from "../support/test-root-key.ts";

/* Callers that open a connection for each request, and keep book. */

interface FreshBook {
  answered: number;
  /** Connected, sent a request, and got no answer: what must not happen. */
  lost: string[];
}

const alive = '{"status":"alive"}';
const overHttp1 = "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n";
const overHttp2 = Buffer.concat([hello(), getRequest(1, "/livez")]);

/** Asks over one new connection after the other, until the port takes none. */
async function callOverFreshConnections(port: number, book: FreshBook, version: 1 | 2): Promise<void> {
  const request = version === 1 ? overHttp1 : overHttp2;
  for (;;) {
    const outcome = await askOnce(port, request);
    if (outcome === "refused") return;
    if (outcome === "answered") book.answered++;
    else book.lost.push(`HTTP/${version}: ${outcome}`);
    await nextTurn();
  }
}

function askOnce(port: number, request: string | Buffer): Promise<string> {
  return new Promise((resolve) => {
    let isConnected = false;
    let heard = "";
    const socket = net.connect({ port, host: "127.0.0.1", noDelay: true });
    socket.on("connect", () => {
      isConnected = true;
      socket.write(request);
    });
    socket.on("data", (chunk: Buffer) => {
      heard += chunk.toString("latin1");
      if (!heard.includes(alive)) return;
      socket.destroy();
      resolve("answered");
    });
    socket.on("error", (error: NodeJS.ErrnoException) => resolve(isConnected ? (error.code ?? "error") : "refused"));
    socket.on("close", () => resolve("closed without an answer"));
  });
}

const uses = 1_000_000;

async function createCountedKey({ baseUrl }: LatchkeyProcess): Promise<string> {
  return (await rawClient({ baseUrl, rootKey: testRootKey }).keys.createKey({ apiId: "api", remaining: uses })).key;
}

async function askToStop(latchkey: LatchkeyProcess, signal: NodeJS.Signals): Promise<void> {
  latchkey.kill(signal);
  await vi.waitFor(() => expect(latchkey.stderr()).toContain('"msg":"stopping"'));
}

type Environment = Record<string, string>;

async function startOn(engine: Engine, environment: Environment = {}): Promise<LatchkeyProcess> {
  // However busy the machine is, every use is decided.
  const patient = { LATCHKEY_ROOT_KEY: testRootKey, LATCHKEY_USAGE_TIMEOUT_MS: "20000" };
  return startLatchkey({ ...(await engine.environment()), ...patient, ...environment });
}

if (!isDeep) {
  describe.each(engines)("a service that is told to stop, on $name", (engine) => {
    it("answers every request it was sent, says first that it is not ready, and has kept every use", async () => {
      const environment = { ...(await engine.environment()), LATCHKEY_DRAIN_MS: "2000" };
      const latchkey = await startOn(engine, environment);
      const key = await createCountedKey(latchkey);
      const book: Book = { answered: 0, dropped: [], refused: 0 };
      const callers = [
        ...Array.from({ length: 12 }, () => callOverHttp1(latchkey.baseUrl, key, book)),
        ...Array.from({ length: 3 }, () => callOverGrpc(latchkey.baseUrl, key, book)),
      ];
      await vi.waitFor(() => expect(book.answered).toBeGreaterThan(100));
      const answeredBefore = book.answered;

      await askToStop(latchkey, "SIGTERM");
      const [readiness, liveness] = await Promise.all([
        fetch(`${latchkey.baseUrl}/readyz`),
        fetch(`${latchkey.baseUrl}/livez`),
      ]);
      await Promise.all(callers);

      expect([readiness.status, liveness.status]).toEqual([503, 200]);
      expect(await latchkey.exited).toBe(0);
      expect(book.dropped).toEqual([]);
      expect(book.answered).toBeGreaterThan(answeredBefore);
      const { baseUrl } = await startOn(engine, environment);
      const { remaining } = await rawClient({ baseUrl }).keys.verifyKey({ key });
      expect(uses - 1 - (remaining as number)).toBe(book.answered);
    });
  });
}

/** The store has no part in these, and in when they end: `npm test` has them on one engine. */
describe.each(sized(engines.slice(0, 1), engines))("a service that is told to stop, on $name", (engine) => {
  const start = (environment: Environment = {}) => startOn(engine, environment);

  // At once, since each has a process of its own and mostly waits for its end.
  it.concurrent("still serves new connections of every kind while it drains", async () => {
    const latchkey = await start({ LATCHKEY_DRAIN_MS: sized("600000", "1500") });
    const key = await createCountedKey(latchkey);
    await askToStop(latchkey, "SIGTERM");

    const answers = await Promise.all(
      clientKinds.map((kind) => clientOf(kind, latchkey.baseUrl, testRootKey).verifyKey({ key })),
    );

    expect(answers.every(({ valid }) => valid)).toBe(true);
    // Elsewhere it is killed with the test.
    if (isDeep) expect(await latchkey.exited).toBe(0);
  });

  it.concurrent("waits for a request that is still being sent, and answers it", async () => {
    const latchkey = await start({ LATCHKEY_DRAIN_MS: "0" });
    const key = await createCountedKey(latchkey);
    const [head, tail] = ['{"key":', `"${key}"}`] as const;
    const headers = { "content-type": "application/json", "content-length": head.length + tail.length };
    const overHttp1 = http.request(`${latchkey.baseUrl}/v1/keys.verifyKey`, { method: "POST", headers });
    const session = http2.connect(latchkey.baseUrl);
    atTestEnd(() => session.destroy());
    const overHttp2 = session.request({ ":method": "POST", ":path": "/v1/keys.verifyKey", ...headers });
    await Promise.all(
      [overHttp1, overHttp2].map((request) => new Promise<void>((resolve) => request.write(head, () => resolve()))),
    );
    // What is sent after the heads is answered after they were read.
    for (let i = 0; i < 3; i++) expect((await fetch(`${latchkey.baseUrl}/livez`)).status).toBe(200);

    await askToStop(latchkey, "SIGTERM");
    await vi.waitFor(() => expect(fetch(`${latchkey.baseUrl}/livez`)).rejects.toThrow("fetch failed"));
    const answers = [once(overHttp1, "response"), once(overHttp2, "response")];
    for (const request of [overHttp1, overHttp2]) request.end(tail);
    overHttp2.resume();

    const [[http1], [http2Headers]] = (await Promise.all(answers)) as [[http.IncomingMessage], [IncomingHttpHeaders]];
    expect([http1.statusCode, http2Headers[":status"]]).toEqual([200, 200]);
    expect(await latchkey.exited).toBe(0);
  });

  it.concurrent("is not kept by connections that ask for nothing more", async () => {
    const latchkey = await start({ LATCHKEY_DRAIN_MS: "100" });
    const { port } = new URL(latchkey.baseUrl);
    const [silent, idle] = [net.connect(Number(port), "127.0.0.1"), net.connect(Number(port), "127.0.0.1")];
    const session = http2.connect(latchkey.baseUrl);
    atTestEnd(() => session.destroy());
    idle.write("GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n");
    await Promise.all([once(silent, "connect"), once(idle, "data"), once(session, "connect")]);

    const startedMs = performance.now();
    latchkey.kill("SIGTERM");
    expect(await latchkey.exited).toBe(0);
    if (isDeep) expect(performance.now() - startedMs).toBeLessThan(5_000);
  });

  it.concurrent("ends health watches, which see that it no longer serves", async () => {
    const latchkey = await start();
    const client = createConnectClient(Health, createGrpcTransport({ baseUrl: latchkey.baseUrl }));
    const seen: Status[] = [];
    const watching = (async () => {
      for await (const { status } of client.watch({})) seen.push(status);
    })();
    await vi.waitFor(() => expect(seen).toEqual([Status.SERVING]));

    const startedMs = performance.now();
    latchkey.kill("SIGTERM");
    expect(await latchkey.exited).toBe(0);
    if (isDeep) expect(performance.now() - startedMs).toBeLessThan(5_000);
    await watching;
    expect(seen).toEqual([Status.SERVING, Status.NOT_SERVING]);
  });

  it.concurrent("stops in order at SIGINT too, and at once when it is told twice", async () => {
    const interrupted = await start({ LATCHKEY_DRAIN_MS: "0" });
    interrupted.kill("SIGINT");
    expect(await interrupted.exited).toBe(0);

    const patient = await start({ LATCHKEY_DRAIN_MS: "600000" });
    await askToStop(patient, "SIGTERM");
    patient.kill("SIGTERM");
    expect(await patient.exited).toBe(1);
  });
});

if (!isDeep) {
  describe.each([1, 2])("a service with %i workers that is told to stop", (workers) => {
    it("answers on every connection that it let in, also on those that came last", async () => {
      const latchkey = await startLatchkey({
        LATCHKEY_DATA_DIR: tempFolder(),
        LATCHKEY_ROOT_KEY: testRootKey,
        LATCHKEY_WORKERS: String(workers),
        LATCHKEY_DRAIN_MS: "50",
      });
      const port = Number(new URL(latchkey.baseUrl).port);
      const book: FreshBook = { answered: 0, lost: [] };
      const callers = Array.from({ length: 16 }, (_, index) => callOverFreshConnections(port, book, index % 4 ? 1 : 2));
      await vi.waitFor(() => expect(book.answered).toBeGreaterThan(200));

      latchkey.kill("SIGTERM");
      await Promise.all(callers);

      expect(await latchkey.exited).toBe(0);
      // One that the system holds at the moment in which a thread's listener is closed is reset by it.
      expect(book.lost.length).toBeLessThanOrEqual(workers);
    });
  });
}
