import { once } from "node:events";
import { readFileSync } from "node:fs";
import http2 from "node:http2";
import https from "node:https";
import net from "node:net";
import tls from "node:tls";
import { afterAll, describe, expect, it, onTestFinished } from "vitest";
import { readSettings, type Settings } from "../../src/config/settings.ts";
import { Secret } from "../../src/domain/secret.ts";
import { internalAccessOf } from "../../src/server/internal-listener.ts";
import { type Certificate, expireCertificate, identityOf, makeCertificate } from "../support/make-certificate.ts";
import { sumMetric } from "../support/read-metric.ts";
import { tempFolder } from "../support/temp-folder.ts";
import { startEmptyListener } from "./start-empty-listener.ts";

const secret = "shared-secret-of-the-test-0123456789";
const otherSecret = "another-secret-of-the-test-0123456789";
const folder = tempFolder(afterAll);
const ca = makeCertificate(folder, "ca");
const clientCa = makeCertificate(folder, "client-ca");
const server = makeCertificate(folder, "server", ca);
const edge = makeCertificate(folder, "edge", clientCa);
const stranger = makeCertificate(folder, "stranger", ca);
const caPem = readFileSync(ca.certificate, "utf8");
const clientCaPem = readFileSync(clientCa.certificate, "utf8");
const authorization = `Bearer ${secret}`;

async function startListener(settings: Partial<Settings> = {}) {
  const access = (changed: Partial<Settings> = {}) =>
    internalAccessOf({
      ...readSettings({}, () => "").settings,
      internalSecrets: [new Secret(secret)],
      internalTls: identityOf(server),
      ...settings,
      ...changed,
    });
  const { listener, metrics } = await startEmptyListener(access());
  const reload = (changed: Partial<Settings>) => listener.reload(access(changed));
  return { port: listener.port, metrics, reload };
}

function shownBy(client: Certificate | undefined) {
  return client && { cert: readFileSync(client.certificate), key: readFileSync(client.key) };
}

async function getOver1(port: number, headers = {}, options: https.RequestOptions = {}) {
  const req = https.get({ host: "127.0.0.1", port, path: "/metrics", headers, ca: caPem, agent: false, ...options });
  const [res] = (await once(req, "response")) as [import("node:http").IncomingMessage];
  let text = "";
  for await (const chunk of res) text += chunk;
  return { status: res.statusCode, text };
}

async function getOver2(session: http2.ClientHttp2Session, headers: http2.OutgoingHttpHeaders = {}) {
  const stream = session.request({ ":path": "/metrics", ...headers });
  const closed = once(stream, "close").then(() => Promise.reject(new Error("closed")));
  closed.catch(() => {});
  const [answer] = (await Promise.race([once(stream, "response"), closed])) as [http2.IncomingHttpHeaders];
  let text = "";
  for await (const chunk of stream) text += chunk;
  return { status: answer[":status"], text };
}

function connectOver2(port: number, client?: Certificate): http2.ClientHttp2Session {
  const session = http2.connect(`https://127.0.0.1:${port}`, { ca: caPem, ...shownBy(client) });
  onTestFinished(() => session.destroy());
  return session;
}

/** Asks for the metrics once. The ticket is the one with which the session could be resumed. */
async function connect(port: number, options: tls.ConnectionOptions) {
  const socket = tls.connect({ host: "127.0.0.1", port, ca: caPem, ...options });
  const tickets: Buffer[] = [];
  let isResumed = false;
  socket.on("session", (ticket: Buffer) => tickets.push(ticket));
  socket.on("secureConnect", () => {
    isResumed = socket.isSessionReused();
  });
  socket.write("GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  const answer = (await socket.toArray()).join("");
  return { answer, ticket: tickets.at(-1), isResumed };
}

describe("the internal port over TLS", () => {
  it("serves HTTP/1.1 and HTTP/2 to clients that trust its CA, and asks for the secret", async () => {
    const { port } = await startListener();
    const session = connectOver2(port);
    expect(await getOver1(port, { authorization })).toMatchObject({
      status: 200,
      text: expect.stringContaining("# HELP"),
    });
    expect(await getOver2(session, { authorization })).toMatchObject({
      status: 200,
      text: expect.stringContaining("# HELP"),
    });
    expect(await getOver1(port)).toMatchObject({ status: 401 });
    expect(await getOver2(session)).toMatchObject({ status: 401 });
    expect(session.alpnProtocol).toBe("h2");
  });

  it("serves nothing in cleartext, nor over TLS before 1.3", async () => {
    const { port, metrics } = await startListener();
    const socket = net.connect(port, "127.0.0.1");
    socket.write(`GET /metrics HTTP/1.1\r\nHost: x\r\nAuthorization: ${authorization}\r\n\r\n`);
    let heard = "";
    socket.on("data", (chunk) => {
      heard += chunk.toString("latin1");
    });
    socket.on("error", () => {});
    await once(socket, "close");
    expect(heard).not.toContain("HTTP/1.1");
    const old = getOver1(port, { authorization }, { maxVersion: "TLSv1.2" });
    await expect(old).rejects.toThrow(/protocol version/);
    const failed = 'latchkey_tls_handshakes_failed_total{port="internal"}';
    expect(sumMetric(await metrics.render(), failed)).toBe(2);
  });

  it("accepts two secrets while one is replaced by the other, and then only the new one", async () => {
    const { port, reload } = await startListener();
    const other = { authorization: `Bearer ${otherSecret}` };
    const both = async () => [(await getOver1(port, { authorization })).status, (await getOver1(port, other)).status];
    expect(await both()).toEqual([200, 401]);
    reload({ internalSecrets: [new Secret(otherSecret), new Secret(secret)] });
    expect(await both()).toEqual([200, 200]);
    reload({ internalSecrets: [new Secret(otherSecret)] });
    expect(await both()).toEqual([401, 200]);
  });
});

describe("client certificates on the internal port", () => {
  it("suffice without the secret, over HTTP/1.1 and HTTP/2", async () => {
    const { port } = await startListener({ internalClientCa: clientCaPem });
    expect(await getOver1(port, {}, shownBy(edge))).toMatchObject({ status: 200 });
    expect(await getOver2(connectOver2(port, edge))).toMatchObject({ status: 200 });
    expect(await getOver1(port), "without a certificate").toMatchObject({ status: 401 });
    expect(await getOver1(port, { authorization }), "with the secret").toMatchObject({ status: 200 });
  });

  it("are refused if another CA has signed them, whatever else the client shows", async () => {
    const { port, metrics } = await startListener({ internalClientCa: clientCaPem });
    await expect(getOver1(port, { authorization }, shownBy(stranger))).rejects.toThrow();
    await expect(getOver2(connectOver2(port, stranger), { authorization })).rejects.toThrow();
    const failed = 'latchkey_tls_handshakes_failed_total{port="internal"}';
    expect(sumMetric(await metrics.render(), failed)).toBe(2);
  });

  it("are the only way in where there is no secret", async () => {
    const { port } = await startListener({ internalClientCa: clientCaPem, internalSecrets: [] });
    expect(await getOver1(port, {}, shownBy(edge))).toMatchObject({ status: 200 });
    await expect(getOver1(port, { authorization })).rejects.toThrow();
    await expect(getOver1(port, {}, shownBy(stranger))).rejects.toThrow();
  });

  it("mean nothing where none are asked for", async () => {
    const { port } = await startListener();
    expect(await getOver1(port, {}, shownBy(edge))).toMatchObject({ status: 401 });
  });

  it("are closed to whoever shows none, where the port speaks no TLS after all", async () => {
    const { port } = await startListener({
      internalTls: undefined,
      internalClientCa: clientCaPem,
      internalSecrets: [],
    });
    expect((await fetch(`http://127.0.0.1:${port}/metrics`)).status).toBe(401);
  });

  it("are asked for again by a client that would resume its session", async () => {
    const { port } = await startListener({ internalClientCa: clientCaPem });
    const { answer, ticket } = await connect(port, { ...shownBy(edge) });
    expect(answer).toMatch(/^HTTP\/1.1 200/);
    const resuming = { session: ticket };
    expect(await connect(port, { ...shownBy(edge), ...resuming })).toMatchObject({
      answer: expect.stringMatching(/^HTTP\/1.1 200/),
      isResumed: false,
    });
    expect(await connect(port, resuming), "without its certificate").toMatchObject({
      answer: expect.stringMatching(/^HTTP\/1.1 401/),
      isResumed: false,
    });
  });

  it.each([true, false])(
    "that have expired are refused, also if the client resumes a session (secret: %s)",
    async (hasSecret) => {
      const internalSecrets = hasSecret ? [new Secret(secret)] : [];
      const { port } = await startListener({ internalClientCa: clientCaPem, internalSecrets });
      const expiring = makeCertificate(folder, "expiring", clientCa);
      const { answer, ticket } = await connect(port, { ...shownBy(expiring) });
      expect(answer).toMatch(/^HTTP\/1.1 200/);
      expireCertificate(expiring, clientCa);
      const resumed = connect(port, { ...shownBy(expiring), session: ticket }).catch(() => ({ answer: "" }));
      expect((await resumed).answer).toBe("");
    },
  );

  it("of a CA that is no longer trusted are refused, also if the client resumes its session", async () => {
    const { port, reload } = await startListener({ internalClientCa: clientCaPem });
    const agent = new https.Agent({ keepAlive: false, maxCachedSessions: 10 });
    expect(await getOver1(port, {}, { ...shownBy(edge), agent })).toMatchObject({ status: 200 });
    reload({ internalClientCa: caPem });
    await expect(getOver1(port, {}, { ...shownBy(edge), agent })).rejects.toThrow();
    expect(await getOver1(port, {}, shownBy(stranger))).toMatchObject({ status: 200 });
  });
});
