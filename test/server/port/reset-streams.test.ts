import http2 from "node:http2";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { systemClock } from "../../../src/ambient/clock.ts";
import { createLog } from "../../../src/ambient/log.ts";
import { createMetrics } from "../../../src/ambient/metrics.ts";
import { createSystemRandom } from "../../../src/ambient/random.ts";
import { WaitingRoom } from "../../../src/domain/waiting-room.ts";
import { WindowTable } from "../../../src/domain/window-table.ts";
import { LocalLimiter } from "../../../src/ratelimit/local/local-limiter.ts";
import { createClient } from "../../../src/sdk/index.ts";
import { createPublicApi } from "../../../src/server/public-api.ts";
import { CoalescingUsageLedger } from "../../../src/store/coalescing-usage-ledger.ts";
import { testRootKey } from "../../faults/hostile/test-root-key.ts";
import { createMemoryStore } from "../../support/memory-store.ts";

/** The public API over a ledger that takes its time: until it is told to go on. */
async function startServer(fastPath: boolean) {
  const lines: string[] = [];
  const metrics = createMetrics();
  const ambient = { clock: systemClock, random: createSystemRandom(), metrics };
  const store = createMemoryStore(systemClock);
  const ledger = new CoalescingUsageLedger(store.usageLanes, { ...ambient, room: new WaitingRoom(1000) });
  const waiting: (() => void)[] = [];
  const usage = {
    async spend(keyId: string) {
      await new Promise<void>((resolve) => waiting.push(resolve));
      return ledger.spend(keyId);
    },
  };
  const { onePort } = createPublicApi({
    ...ambient,
    keys: store.keys,
    usage,
    limiter: new LocalLimiter(new WindowTable(1), ambient),
    isRootKey: (presented) => presented.reveal() === testRootKey,
    log: createLog("warn", (line) => lines.push(line)),
    fastPath,
    cacheKeysMax: 1000,
    connectionsMax: 1000,
  });
  const port = await onePort.listen(0, "127.0.0.1");
  onTestFinished(() => onePort.close(100));
  const counter = async (name: string) => {
    const samples = (await metrics.render()).matchAll(new RegExp(`^${name}(?:\\{.*\\})? (\\d+)$`, "gm"));
    return [...samples].reduce((sum, [, count]) => sum + Number(count), 0);
  };
  return { port, onePort, waiting, lines, counter };
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
    const { port, onePort, waiting, lines, counter } = await startServer(fastPath);
    const baseUrl = `http://127.0.0.1:${port}`;
    const client = createClient({ baseUrl, rootKey: testRootKey });
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
    waiting.splice(0).forEach((goOn) => void goOn());
    const next = client.verifyKey({ key });
    await vi.waitFor(() => expect(waiting).toHaveLength(1));
    waiting.splice(0).forEach((goOn) => void goOn());

    expect(await next).toMatchObject({ valid: true, remaining: 8 });
    expect(await counter("latchkey_serving_failures_total")).toBe(0);
    expect(lines).toEqual([]);
    session.destroy();
  });
});
