import { once } from "node:events";
import { copyFileSync, readFileSync } from "node:fs";
import http2 from "node:http2";
import https from "node:https";
import net from "node:net";
import { join } from "node:path";
import tls from "node:tls";
import { afterAll, afterEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { type Clock, systemClock } from "../../src/ambient/clock.ts";
import { createLog } from "../../src/ambient/log.ts";
import { createMetrics } from "../../src/ambient/metrics.ts";
import { createSystemRandom } from "../../src/ambient/random.ts";
import { Secret } from "../../src/domain/secret.ts";
import { startInternalListener } from "../../src/server/internal-listener.ts";
import { type Certificate, makeCertificate } from "../support/make-certificate.ts";
import { tempFolder } from "../support/temp-folder.ts";

const secret = "shared-secret-of-the-test-0123456789";
const folder = tempFolder(afterAll);
const ca = makeCertificate(folder, "ca");
const [first, second] = [makeCertificate(folder, "first", ca), makeCertificate(folder, "second", ca)];
const caPem = readFileSync(ca.certificate, "utf8");
const authorization = `Bearer ${secret}`;
const dayMs = 86_400_000;

afterEach(() => void vi.useRealTimers());

/** The internal port with this certificate, in files that the test may replace. */
async function startListener({ certificate, key }: Certificate, clock: Clock = systemClock) {
  const folder = tempFolder();
  const files = { certFile: join(folder, "cert.pem"), keyFile: join(folder, "key.pem") };
  copyFileSync(certificate, files.certFile);
  copyFileSync(key, files.keyFile);
  const logLines: string[] = [];
  const listener = await startInternalListener({
    clock,
    random: createSystemRandom(),
    log: createLog("info", (line) => logLines.push(line)),
    metrics: createMetrics(),
    host: "127.0.0.1",
    port: 0,
    secret: new Secret(secret),
    tls: files,
    services: new Map(),
  });
  onTestFinished(() => listener.close());
  return { port: listener.port, files, logLines };
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
  const [answer] = (await once(stream, "response")) as [http2.IncomingHttpHeaders];
  let text = "";
  for await (const chunk of stream) text += chunk;
  return { status: answer[":status"], text };
}

function connectOver2(port: number): http2.ClientHttp2Session {
  const session = http2.connect(`https://127.0.0.1:${port}`, { ca: caPem });
  onTestFinished(() => session.destroy());
  return session;
}

/** The name in the certificate that the port shows. */
async function shownBy(port: number): Promise<string | undefined> {
  const socket = tls.connect({ host: "127.0.0.1", port, ca: caPem });
  await once(socket, "secureConnect");
  const { subject } = socket.getPeerCertificate();
  socket.destroy();
  return subject.CN as string;
}

describe("the internal port over TLS", () => {
  it("serves HTTP/1.1 and HTTP/2 to clients that trust its CA, and asks for the secret", async () => {
    const { port } = await startListener(first);
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
    const { port } = await startListener(first);
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
  });

  it("tells when its certificate expires", async () => {
    const { port } = await startListener(first);
    const { text } = await getOver1(port, { authorization });
    const expiresSeconds = Number(/^latchkey_internal_certificate_expires_seconds (\S+)$/m.exec(text)?.[1]);
    expect(Math.abs(expiresSeconds * 1000 - (Date.now() + 2 * dayMs))).toBeLessThan(dayMs / 2);
  });

  it.each([
    ["has expired", 3, /has expired/],
    ["is not valid yet", -3, /not valid yet/],
  ])("warns of a certificate that %s, and serves all the same", async (_, days, message) => {
    const clock = { ...systemClock, nowMs: () => Date.now() + days * dayMs };
    const { port, logLines } = await startListener(first, clock);
    expect(logLines).toEqual([expect.stringMatching(message)]);
    expect(logLines[0]).toContain('"level":"warn"');
    expect(await getOver1(port, { authorization })).toMatchObject({ status: 200 });
  });
});

describe("a renewed certificate", () => {
  it("is used without a restart once both files are there, and open connections go on", async () => {
    vi.useFakeTimers({ toFake: ["setInterval"] });
    const { port, files, logLines } = await startListener(first);
    const session = connectOver2(port);
    expect(await getOver2(session, { authorization })).toMatchObject({ status: 200 });

    copyFileSync(second.certificate, files.certFile);
    vi.advanceTimersByTime(10_000);
    await vi.waitFor(() => expect(logLines.join()).toContain("keeps its certificate"));
    vi.advanceTimersByTime(30_000);
    expect(await shownBy(port)).toBe("first");
    // Told once, however often it is tried. While the other file is being written it may be told for another reason.
    expect(logLines.filter((line) => line.includes("keeps its certificate"))).toHaveLength(1);

    copyFileSync(second.key, files.keyFile);
    vi.advanceTimersByTime(10_000);
    await vi.waitFor(() => expect(logLines.join()).toContain("has a new certificate"));
    expect(await shownBy(port)).toBe("second");
    expect(await getOver2(session, { authorization })).toMatchObject({ status: 200 });
  });
});
