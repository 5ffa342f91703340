import http2 from "node:http2";
import type { AddressInfo } from "node:net";
import { expect } from "vitest";
import { latchkeyOf } from "../support/clients.ts";
import { FaultyProxy } from "../support/faulty-proxy.ts";
import { startLatchkey } from "../support/latchkey-process.ts";
import { freePort } from "../support/local-server.ts";
import { readMetric } from "../support/read-metric.ts";
import { tempFolder } from "../support/temp-folder.ts";
import { createTestDatabase } from "../support/test-database.ts";
import { atTestEnd } from "../support/test-end.ts";
import { testRootKey } from "../support/test-root-key.ts";

/* Services that answer UNAVAILABLE, for clients that repeat such calls by themselves. */

export const attemptsMax = 3;

/** What makes a client of gRPC repeat every call that was UNAVAILABLE. */
export const serviceConfig = JSON.stringify({
  methodConfig: [
    {
      name: [{}],
      retryPolicy: {
        maxAttempts: attemptsMax,
        initialBackoff: "0.01s",
        maxBackoff: "0.01s",
        backoffMultiplier: 1,
        retryableStatusCodes: ["UNAVAILABLE"],
      },
    },
  ],
});

/** Its database is not there: nothing is taken or changed, whatever is asked. */
export async function startWithoutDatabase() {
  const [port, internalPort, nowhere] = await Promise.all([freePort(), freePort(), freePort()]);
  startLatchkey({
    LATCHKEY_DATA_DIR: tempFolder(),
    LATCHKEY_ROOT_KEY: testRootKey,
    DATABASE_URL: `postgres://127.0.0.1:${nowhere}/nowhere`,
    PORT: String(port),
    LATCHKEY_INTERNAL_PORT: String(internalPort),
  }).catch(() => {});
  while (!(await fetch(`http://127.0.0.1:${port}/livez`).catch(() => undefined))) await undefined;
  return { port, calls: () => readMetric(internalPort, "latchkey_call_seconds_count") };
}

/** Its database gets every charge. While `isLosing`, no answer of it comes back, so the outcome of a call is unknown. */
export async function startWithLostReplies() {
  const database = new URL(await createTestDatabase());
  const proxy = await FaultyProxy.start(Number(database.port));
  database.port = String(proxy.port);
  const { baseUrl, internalUrl } = await startLatchkey({
    LATCHKEY_DATA_DIR: tempFolder(),
    LATCHKEY_ROOT_KEY: testRootKey,
    DATABASE_URL: database.href,
  });
  const { keys } = latchkeyOf("sdk", baseUrl, testRootKey);
  const { key } = await keys.createKey({ apiId: "api", remaining: 100 });
  // From now on it is found in memory: what is lost is the answer to a charge.
  expect(await keys.verifyKey({ key })).toMatchObject({ valid: true, remaining: 99 });
  return {
    port: Number(new URL(baseUrl).port),
    key,
    calls: () => readMetric(Number(new URL(internalUrl).port), "latchkey_call_seconds_count"),
    set isLosing(isLosing: boolean) {
      proxy.onReply = () => (isLosing ? "cut" : "pass");
    },
    /** What is left after one use more, as soon as the database is used again. */
    async remainingAfterUse(): Promise<number> {
      let remaining: number | undefined;
      while (remaining === undefined) remaining = (await keys.verifyKey({ key }).catch(() => undefined))?.remaining;
      return remaining;
    },
  };
}

/** Passes calls on, and their answers without the header that forbids to repeat them. Returns its port. */
export async function startForgetfulProxy(servicePort: number, onAttempt: () => void): Promise<number> {
  const upstream = http2.connect(`http://127.0.0.1:${servicePort}`);
  const server = http2.createServer();
  server.on("stream", (stream, { ":path": path, "content-type": type }) => {
    onAttempt();
    const passed = upstream.request({ ":method": "POST", ":path": path, "content-type": type, te: "trailers" });
    passed.on("response", ({ "grpc-retry-pushback-ms": _, ...headers }, flags) => {
      const isLast = (flags & http2.constants.NGHTTP2_FLAG_END_STREAM) !== 0;
      stream.respond(headers, isLast ? { endStream: true } : { waitForTrailers: true });
      if (!isLast) passed.pipe(stream);
    });
    passed.on("trailers", (trailers) => stream.on("wantTrailers", () => stream.sendTrailers(trailers)));
    stream.pipe(passed);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  atTestEnd(() => {
    upstream.destroy();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}
