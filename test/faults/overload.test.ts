import { Code, type ConnectError } from "@connectrpc/connect";
import * as grpc from "@grpc/grpc-js";
import { describe, expect, it, onTestFinished } from "vitest";
import { ErrorDetailSchema } from "../../gen/latchkey/v1/errors_pb.js";
import type { Unavailable } from "../../src/domain/unavailable.ts";
import { WaitingRoom } from "../../src/domain/waiting-room.ts";
import { clientOf } from "../support/clients.ts";
import { frameType, hello, parseFrames } from "./hostile/http2-frames.ts";
import { RawSocket } from "./hostile/raw-socket.ts";
import { type CrowdedServer, startCrowded } from "./overload/crowded-server.ts";
import { type Answer, verify } from "./overload/verify.ts";

/* More load than the service can take: some calls are rejected immediately and by name; the others are not affected. */

const verifyAll = (server: CrowdedServer, keys: readonly string[]) =>
  Promise.all(keys.map((key) => verify(server, key)));
/** A guard against a hang, however busy the machine is. */
const patiently = { timeout: 60_000 };
const repeat = <T>(value: T, times: number) => new Array<T>(times).fill(value);
const turnedAway = { status: 503, retryAfter: "1", code: "SERVICE_UNAVAILABLE", remaining: undefined };

/** A waiting room that one key's calls can fill. */
class RoomWithoutShares extends WaitingRoom {
  override enter(_sameSubject: number): Unavailable | undefined {
    return super.enter(0);
  }
}

/** One counted key is flooded while its commit takes long, until no more than that many of its callers wait; then others come. */
async function flood(
  server: CrowdedServer,
  waitingMax: number,
): Promise<{ hot: Answer[]; others: Answer[]; fromMemory: Answer[] }> {
  const [hot = ""] = await server.addKeys(1, 1000);
  const others = await server.addKeys(50, 10);
  const plain = await server.addKeys(20);
  await verifyAll(server, [hot, ...others, ...plain]);
  const { letGo } = server.hold();
  const flooding = verifyAll(server, repeat(hot, 400));
  await expect.poll(() => server.shed("call"), patiently).toBeGreaterThanOrEqual(400 - waitingMax);
  const served = verifyAll(server, others);
  // Served while the others wait: otherwise this would wait as well, until the test's time is over.
  const fromMemory = await verifyAll(server, plain);
  letGo();
  return { hot: await flooding, others: await served, fromMemory };
}

describe("a flood of one counted key", () => {
  it("gets 503 beyond its share of the waiting room; other counted keys and those from memory are served", async () => {
    const server = await startCrowded();
    const { hot, others, fromMemory } = await flood(server, 20);
    expect([...others, ...fromMemory].filter(({ status }) => status !== 200)).toEqual([]);
    const shed = hot.filter(({ status }) => status !== 200);
    expect(new Set(shed.map((answer) => JSON.stringify(answer)))).toEqual(new Set([JSON.stringify(turnedAway)]));
    // A tenth of the places wait for the next commit; as many can be in the one under way.
    expect(hot.length - shed.length).toBeGreaterThanOrEqual(10);
    expect(hot.length - shed.length).toBeLessThanOrEqual(20);
    expect(await server.shed("call")).toBe(shed.length);
    expect(server.waitingRoom.taken).toBe(0);
  });

  it("does not charge rejected calls, and is served again when it is over", async () => {
    const server = await startCrowded();
    const [key = ""] = await server.addKeys(1, 1000);
    const { letGo } = server.hold();
    const flooding = verifyAll(server, repeat(key, 200));
    await expect.poll(() => server.shed("call"), patiently).toBeGreaterThan(150);
    letGo();
    const served = (await flooding).filter(({ status }) => status === 200).length;
    expect(await verify(server, key)).toMatchObject({ status: 200, code: "VALID", remaining: 1000 - served - 1 });
  });

  it("would crowd the others out if it could take the whole waiting room", async () => {
    const server = await startCrowded({ waitingRoom: (onRejected) => new RoomWithoutShares(100, onRejected) });
    const { others } = await flood(server, 100);
    expect(others.filter(({ status }) => status === 503).length).toBeGreaterThan(25);
  });
});

describe("a call that finds the waiting room full", () => {
  /** A hundred keys wait for a commit that does not end. */
  async function fill(server: CrowdedServer) {
    const keys = await server.addKeys(101, 10);
    for (const some of [keys.slice(0, 50), keys.slice(50)]) await verifyAll(server, some);
    const { letGo } = server.hold();
    const waiting = verifyAll(server, keys.slice(0, 100));
    await expect.poll(() => server.waitingRoom.taken, patiently).toBe(100);
    return { waiting, letGo, oneMore: keys[100] as string };
  }

  it.each([true, false])(
    "is rejected before it reaches the store, and waiting calls are served; fast path: %s",
    async (fastPath) => {
      const server = await startCrowded({ fastPath });
      const { waiting, letGo, oneMore } = await fill(server);
      const [plain = ""] = await server.addKeys(1);
      const before = server.charged;
      expect(await verify(server, oneMore)).toEqual(turnedAway);
      expect(await verify(server, plain), "also a look-up takes a place").toEqual(turnedAway);
      expect(server.charged).toBe(before);
      letGo();
      expect((await waiting).filter(({ code }) => code !== "VALID")).toEqual([]);
      expect(await verify(server, oneMore)).toMatchObject({ code: "VALID", remaining: 8 });
    },
  );

  it.each(["grpc", "grpc-web", "connect-binary"] as const)(
    "is told so over %s, each by its own id, and when to come again",
    async (kind) => {
      const server = await startCrowded();
      const { waiting, letGo, oneMore } = await fill(server);
      const client = clientOf(kind, server.baseUrl, "none");
      const ids = new Set<string>();
      for (let i = 0; i < 3; i++) {
        const refusal = await client.verifyKey({ key: oneMore }).catch((error: ConnectError) => error);
        expect(refusal).toMatchObject({ code: Code.Unavailable });
        const { metadata } = refusal as ConnectError;
        expect((refusal as ConnectError).findDetails(ErrorDetailSchema)).toMatchObject([
          { code: "SERVICE_UNAVAILABLE", retryDelayMs: 1000, requestId: metadata.get("x-request-id") },
        ]);
        expect(metadata.get("retry-after")).toBe("1");
        ids.add(metadata.get("x-request-id") ?? "");
      }
      expect(ids.size).toBe(3);
      letGo();
      await waiting;
    },
  );
});

describe("a connection that finds too many open", () => {
  const refusedStream = 7;
  const request = "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n";

  /** All places are taken by clients that were served. */
  async function crowd() {
    const server = await startCrowded({ connectionsMax: 5 });
    const inside = Array.from({ length: 5 }, () => new RawSocket(server.port).say(request));
    for (const socket of inside) expect(await socket.hear((heard) => heard.includes('"alive"'))).toContain("200 OK");
    onTestFinished(() => {
      for (const socket of inside) socket.hangUp();
    });
    return { server, inside };
  }

  it("is told 503 and closed over HTTP/1.1; the others are served on, and a place that is left is taken", async () => {
    const { server, inside } = await crowd();
    const outside = new RawSocket(server.port).say(request);
    await outside.closed;
    expect(outside.heard.toString()).toMatch(
      /^HTTP\/1\.1 503 Service Unavailable\r\ncontent-type: application\/json\r\n(.+\r\n)*x-request-id: (req_\w+)\r\nretry-after: 1\r\nconnection: close\r\n\r\n\{"error":\{"code":"SERVICE_UNAVAILABLE",.*"requestId":"\2"\}\}$/,
    );
    expect(await server.shed("connection")).toBe(1);
    const [first, second] = inside as [RawSocket, RawSocket];
    await second.say(request).hear((heard) => heard.toString().split('"alive"').length === 3);
    expect(second.heard.toString().split("200 OK")).toHaveLength(3);
    first.hangUp();
    await expect.poll(() => server.connections(), patiently).toBe(4);
    const next = new RawSocket(server.port).say(request);
    expect(await next.hear((heard) => heard.includes('"alive"'))).toContain("200 OK");
    next.hangUp();
  });

  it("is told by GOAWAY over HTTP/2 that nothing was done, which gRPC clients know as unavailable", async () => {
    const { server } = await crowd();
    const outside = new RawSocket(server.port).say(hello());
    await outside.closed;
    const [settings, goAway] = parseFrames(outside.heard);
    expect(settings?.type).toBe(frameType.settings);
    expect(goAway).toMatchObject({
      type: frameType.goAway,
      payload: Buffer.from([0, 0, 0, 0, 0, 0, 0, refusedStream]),
    });
    const call = clientOf("grpc-js", server.baseUrl, "none").verifyKey({ key: "any" });
    await expect(call).rejects.toMatchObject({ code: grpc.status.UNAVAILABLE });
  });

  it("is closed if it sends nothing, or keeps sending", async () => {
    const { server, inside } = await crowd();
    const silent = new RawSocket(server.port);
    const talkative = new RawSocket(server.port).trickle("x".repeat(10_000), 20);
    await Promise.all([silent.closed, talkative]);
    expect(server.connections()).toBe(inside.length);
  });
});
