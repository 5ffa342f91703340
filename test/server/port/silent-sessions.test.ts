import { once } from "node:events";
import { readFileSync } from "node:fs";
import http2 from "node:http2";
import net from "node:net";
import tls from "node:tls";
import { afterAll, expect, it, onTestFinished } from "vitest";
import { createLog } from "../../../src/ambient/log.ts";
import { createMetrics } from "../../../src/ambient/metrics.ts";
import { Secret } from "../../../src/domain/secret.ts";
import { defaultTimeouts } from "../../../src/server/port/connections.ts";
import { Guard } from "../../../src/server/port/guard.ts";
import { OnePort } from "../../../src/server/port/one-port.ts";
import type { TlsOptions } from "../../../src/server/port/tls-handshakes.ts";
import { hello } from "../../faults/hostile/http2-frames.ts";
import { makeCertificate } from "../../support/make-certificate.ts";
import { tempFolder } from "../../support/temp-folder.ts";
import { TestClock } from "../../support/test-clock.ts";

const { certificate: certFile, key: keyFile } = makeCertificate(tempFolder(afterAll), "port");
const ca = readFileSync(certFile, "utf8");
const secured: TlsOptions = { cert: ca, key: new Secret(readFileSync(keyFile, "utf8")), versionMin: "TLSv1.3" };
/** A sweep each 20 ms: a ping after three silent ones, and the end after four more. */
const timeouts = { ...defaultTimeouts, headersMs: 20, answerMs: 60 };

it("disconnects an HTTP/2 client that is silent over TLS, unless it answers a ping", async () => {
  const guard = new Guard({ clock: new TestClock(), log: createLog("error", () => {}), metrics: createMetrics() });
  const listen = (options: { tls?: TlsOptions }) => {
    const port = new OnePort({ listener: () => {}, malformed: () => "", guard, timeouts, ...options });
    onTestFinished(() => port.close(0));
    return port.listen(0, "127.0.0.1");
  };
  const [securePort, clearPort] = [await listen({ tls: secured }), await listen({})];

  const answering = http2.connect(`https://127.0.0.1:${securePort}`, { ca });
  onTestFinished(() => answering.destroy());
  let pings = 0;
  answering.on("ping", () => pings++);
  await once(answering, "remoteSettings");
  const clear = net.connect(clearPort, "127.0.0.1");
  onTestFinished(() => void clear.destroy());
  clear.resume().write(hello());
  const silent = tls.connect({ host: "127.0.0.1", port: securePort, ca, ALPNProtocols: ["h2"] });
  onTestFinished(() => void silent.destroy());
  await once(silent, "secureConnect");
  silent.resume().write(hello());

  await once(silent, "close");
  await expect.poll(() => pings, { timeout: 60_000 }).toBeGreaterThan(2);
  expect([answering.destroyed, clear.closed]).toEqual([false, false]);
});
