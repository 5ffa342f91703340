import { once } from "node:events";
import http2 from "node:http2";
import { expect, it, onTestFinished } from "vitest";
import { createLog } from "../../../src/ambient/log.ts";
import { createMetrics } from "../../../src/ambient/metrics.ts";
import { defaultTimeouts } from "../../../src/server/port/connections.ts";
import { Guard } from "../../../src/server/port/guard.ts";
import { OnePort } from "../../../src/server/port/one-port.ts";
import { TestClock } from "../../support/test-clock.ts";

const answerBytes = 100_000;
const heldBytesMax = 16 * 1024 * 1024;

it("cuts off the oldest answers over HTTP/2 that are not taken, once all together hold too much", async () => {
  const guard = new Guard({ clock: new TestClock(), log: createLog("error", () => {}), metrics: createMetrics() });
  const listener = (_: unknown, res: { end(body: Buffer): void }) => res.end(Buffer.alloc(answerBytes));
  const timeouts = { ...defaultTimeouts, headersMs: 50 };
  const port = new OnePort({ listener, malformed: () => "", guard, timeouts });
  const url = `http://127.0.0.1:${await port.listen(0, "127.0.0.1")}`;
  onTestFinished(() => port.close(0));
  const connect = (initialWindowSize: number) => {
    const session = http2.connect(url, { settings: { initialWindowSize } });
    onTestFinished(() => session.destroy());
    return session;
  };

  const codes: number[] = [];
  for (let connections = 0; connections < 8; connections++) {
    const session = connect(0);
    await once(session, "remoteSettings");
    for (let streams = 0; streams < 30; streams++) {
      const stream = session.request({ ":path": "/" });
      stream.on("error", () => {});
      stream.on("close", () => codes.push(stream.rstCode));
    }
  }
  const cutOffMin = Math.ceil((240 * answerBytes - heldBytesMax) / answerBytes);
  await expect.poll(() => codes.length, { timeout: 60_000 }).toBeGreaterThanOrEqual(cutOffMin);
  expect(new Set(codes)).toEqual(new Set([http2.constants.NGHTTP2_ENHANCE_YOUR_CALM]));
  expect(codes.length).toBeLessThan(240);

  const taken = connect(1_000_000).request({ ":path": "/" });
  let bytes = 0;
  for await (const chunk of taken) bytes += chunk.length;
  expect(bytes).toBe(answerBytes);
});
