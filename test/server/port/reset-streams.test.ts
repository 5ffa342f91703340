import http2 from "node:http2";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import type { SpentCounters } from "../../../src/store/usage-ledger.ts";
import { composePublicApi } from "../../support/compose-public-api.ts";
import { rawClient } from "../../support/raw-client.ts";
import { sumMetric } from "../../support/read-metric.ts";
import { testRootKey } from "../../support/test-root-key.ts";

/** The public API over a ledger that waits until the test lets it go on. */
async function startServer(fastPath: boolean) {
  const waiting: (() => void)[] = [];
  const { onePort, metrics, logLines } = composePublicApi(({ usage }) => ({
    fastPath,
    usage: {
      async spend(counters: SpentCounters, cost: number) {
        await new Promise<void>((resolve) => waiting.push(resolve));
        return usage.spend(counters, cost);
      },
    },
  }));
  const port = await onePort.listen(0, "127.0.0.1");
  onTestFinished(() => onePort.close(100));
  return { port, onePort, waiting, metrics, logLines };
}

describe.each([
  ["on", true],
  ["off", false],
])("a request whose client goes away while its use is charged, with the fast path %s", (_, fastPath) => {
  it.each([
    ["by a reset over gRPC", "application/grpc", "reset"],
    ["by hanging up over gRPC", "application/grpc", "hang up"],
    ["by a reset over JSON", "application/json", "reset"],
    ["by hanging up over JSON", "application/json", "hang up"],
  ])("%s is charged, and its answer is dropped", async (__, contentType, how) => {
    const { port, onePort, waiting, metrics, logLines } = await startServer(fastPath);
    const baseUrl = `http://127.0.0.1:${port}`;
    const client = rawClient({ baseUrl, rootKey: testRootKey }).keys;
    const { key } = await client.createKey({ apiId: "api", remaining: 10 });
    const session = http2.connect(baseUrl);
    session.on("error", () => {});
    const isGrpc = contentType === "application/grpc";
    const path = isGrpc ? "/latchkey.v1.KeysService/VerifyKey" : "/v1/keys.verifyKey";
    const stream = session.request({ ":method": "POST", ":path": path, "content-type": contentType });
    stream.on("error", () => {});
    const message = Buffer.concat([Buffer.of(10, key.length), Buffer.from(key)]);
    stream.end(isGrpc ? Buffer.concat([Buffer.of(0, 0, 0, 0, message.length), message]) : JSON.stringify({ key }));
    await vi.waitFor(() => expect(waiting).toHaveLength(1));

    if (how === "reset") stream.close(http2.constants.NGHTTP2_CANCEL);
    else session.destroy();
    // The reset is read before the answer to a ping that was sent after it.
    if (how === "reset") await new Promise((resolve) => session.ping(resolve));
    else await vi.waitFor(() => expect(onePort.connections).toBeLessThanOrEqual(1));
    waiting.splice(0).forEach((resume) => void resume());
    const next = client.verifyKey({ key });
    await vi.waitFor(() => expect(waiting).toHaveLength(1));
    waiting.splice(0).forEach((resume) => void resume());

    expect(await next).toMatchObject({ valid: true, remaining: 8 });
    expect(sumMetric(await metrics.render(), "latchkey_serving_failures_total")).toBe(0);
    expect(logLines).toEqual([]);
    session.destroy();
  });
});
