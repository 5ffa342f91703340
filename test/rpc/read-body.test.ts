import { PassThrough } from "node:stream";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { createLog } from "../../src/ambient/log.ts";
import { createMetrics } from "../../src/ambient/metrics.ts";
import { ApiError } from "../../src/rpc/api-error.ts";
import { bodyBytesMax, collectBody, type ReadBody } from "../../src/rpc/read-body.ts";
import { Guard } from "../../src/server/port/guard.ts";
import { TestClock } from "../support/test-clock.ts";

class Request extends PassThrough {
  aborted = false;
}

function collect(takeBody?: () => void) {
  const source = new Request({ highWaterMark: 1 << 20 });
  onTestFinished(() => void source.destroy());
  const taken: ReadBody[] = [];
  collectBody(source, undefined, { takeBody: takeBody ?? ((body) => taken.push(body)) });
  return { source, taken };
}

/** Bytes that the garbage collector cannot free. */
function bytesOutsideOfTheHeap(): number {
  setFlagsFromString("--expose-gc");
  runInNewContext("gc")();
  return process.memoryUsage().arrayBuffers;
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

describe("a body in pieces", () => {
  it.each([1, 2, 3, 1000, 4096, 65_536])("of %i bytes is handed over whole, once", async (pieceBytes) => {
    const { source, taken } = collect();
    const body = Buffer.from(Array.from({ length: bodyBytesMax }, (_, index) => index % 251));
    for (let at = 0; at < body.length; at += pieceBytes) source.write(body.subarray(at, at + pieceBytes));
    source.end();
    await turn();
    expect(taken).toHaveLength(1);
    expect((taken[0] as Buffer).equals(body)).toBe(true);
  });

  it("that is one byte too long is refused, once", async () => {
    const { source, taken } = collect();
    source.write(Buffer.alloc(bodyBytesMax));
    source.end(Buffer.alloc(1));
    await turn();
    expect(taken).toMatchObject([{ code: "PAYLOAD_TOO_LARGE" }]);
  });

  it("that its client breaks off is no body, also where the source ends", async () => {
    const { source, taken } = collect();
    source.write(Buffer.from("{}"));
    source.aborted = true;
    source.end();
    await turn();
    expect(taken).toEqual([]);
  });

  it("that ends after its request was closed, as over HTTP/2, is no body", async () => {
    const { source, taken } = collect();
    source.write(Buffer.alloc(4096));
    await turn();
    source.emit("close");
    source.end(Buffer.alloc(1));
    await turn();
    expect(taken).toEqual([]);
  });

  it("keeps only its own bytes in memory, not all that was read from the connection with it", async () => {
    const before = bytesOutsideOfTheHeap();
    const { source } = collect();
    for (let piece = 0; piece < 500; piece++) {
      source.write(Buffer.alloc(65_536).subarray(100, 101));
      await turn();
    }
    // The memory is freed a little later.
    await vi.waitFor(() => expect(bytesOutsideOfTheHeap() - before).toBeLessThan(1_000_000));
  });
});

describe("bodies that are not whole yet", () => {
  it("hold 16 MB together: beyond it the oldest are refused, and the others are served", async () => {
    const bodies = Array.from({ length: 300 }, () => collect());
    for (const { source } of bodies) {
      source.write(Buffer.alloc(60_000));
      await turn();
    }
    const refused = bodies.filter(({ taken }) => taken[0] instanceof ApiError);
    expect(refused).toEqual(bodies.slice(0, refused.length));
    expect(refused.every(({ taken }) => (taken[0] as ApiError).code === "SERVICE_UNAVAILABLE")).toBe(true);
    expect((bodies.length - refused.length) * 60_000).toBeLessThanOrEqual(16 * 1024 * 1024);
    expect((bodies.length - refused.length + 1) * 60_000).toBeGreaterThan(16 * 1024 * 1024);
    for (const { source } of bodies) source.end();
    await turn();
    expect(bodies.slice(refused.length).every(({ taken }) => (taken[0] as Buffer).length === 60_000)).toBe(true);
  });

  it("are refused without harm to the one that needs the room, even if refusing throws", async () => {
    const metrics = createMetrics();
    const guard = new Guard({ clock: new TestClock(), log: createLog("error", () => {}), metrics });
    const failing = vi.fn(() => {
      throw new Error("the oldest cannot be answered");
    });
    const bodies = Array.from({ length: 280 }, (_, index) => (index === 0 ? collect(failing) : collect()));
    for (const { source } of bodies) guard.watch(source);
    for (const { source } of bodies) {
      source.write(Buffer.alloc(60_000));
      await turn();
    }
    expect(failing).toHaveBeenCalledOnce();
    expect(bodies.map(({ source }) => source.destroyed)).toEqual(bodies.map((_, index) => index === 0));
    expect(await metrics.render()).toContain("latchkey_serving_failures_total 1");
  });

  it("leave room for others when their clients go away", async () => {
    for (let round = 0; round < 2; round++) {
      const bodies = Array.from({ length: 250 }, () => collect());
      for (const { source } of bodies) source.write(Buffer.alloc(60_000));
      await turn();
      for (const { source } of bodies) source.destroy();
      await turn();
      expect(bodies.flatMap(({ taken }) => taken)).toEqual([]);
    }
  });
});
