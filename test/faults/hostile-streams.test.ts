import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import {
  endStream,
  frame,
  frameType,
  getRequest,
  hello,
  openRequest,
  parseFrames,
  uint32,
  verifyHeaders,
} from "./hostile/http2-frames.ts";
import { RawSocket } from "./hostile/raw-socket.ts";
import { startTarget, type Target } from "./hostile/start-target.ts";

/* HTTP/2 streams that are reset, stay incomplete or stay open, against a process that has just started. */

const megabyte = 1024 * 1024;

let target: Target;
const dial = () => target.dial();

beforeAll(async () => {
  target = await startTarget();
});

afterEach(async () => {
  target.hangUpAll();
  await target.expectUnharmed();
});

afterAll(() => target.stop());

describe("a stream that its client resets", () => {
  const reset = (stream: number) => frame(frameType.rstStream, 0, stream, uint32(8));
  const grpcTo = (path: string, contentType = "application/grpc") =>
    [...verifyHeaders.slice(0, 2), [":authority", "x"], [":path", path], ["content-type", contentType]] as (readonly [
      string,
      string,
    ])[];
  const verifyKey = "/latchkey.v1.KeysService/VerifyKey";
  const kinds = {
    "that expects to be told to go on": [...verifyHeaders, ["expect", "100-continue"]],
    "that expects something else": [...verifyHeaders, ["expect", "cnry"]],
    "for a tunnel": [
      [":method", "CONNECT"],
      [":authority", "cnry:443"],
    ],
    "of JSON": verifyHeaders,
    "of gRPC": grpcTo(verifyKey),
    "of gRPC in JSON": grpcTo(verifyKey, "application/grpc+json"),
    "for no method": grpcTo("/cnry/Cnry"),
    "for a watch": grpcTo("/grpc.health.v1.Health/Watch"),
  } satisfies Record<string, readonly (readonly [string, string])[]>;

  it.each(Object.entries(kinds))(
    "in the packet that opens its connection causes no error: one %s",
    async (_, headers) => {
      const opened = openRequest(1, headers as typeof verifyHeaders);
      await dial()
        .say(Buffer.concat([hello(), opened, reset(1), getRequest(3, "/livez")]))
        .listen();
      expect(target.sockets[0]?.heard.toString("latin1")).toContain('{"status":"alive"}');
    },
  );

  it("is no call: not with half its body, and not with all of it, in any protocol", async () => {
    const { calls } = await target.state();
    const message = Buffer.from([0, 0, 0, 0, 3, 10, 1, 120]);
    const bodies = [
      Buffer.from('{"key":"x"}'),
      message,
      Buffer.concat([Buffer.of(0, 0, 0, 0, 11), Buffer.from('{"key":"x"}')]),
    ];
    const headers = [verifyHeaders, grpcTo(verifyKey), grpcTo(verifyKey, "application/grpc+json")];
    const ways = headers.flatMap((of, way) =>
      [0, endStream].flatMap((flags) =>
        [0, 4, undefined].map((cut) => ({ headers: of, flags, body: (bodies[way] as Buffer).subarray(0, cut) })),
      ),
    );
    const say = ({ headers: of, flags, body }: (typeof ways)[number], index: number) => {
      const stream = 2 * index + 1;
      return Buffer.concat([openRequest(stream, of), frame(frameType.data, flags, stream, body), reset(stream)]);
    };
    await dial()
      .say(Buffer.concat([hello(), ...ways.map(say)]))
      .listen();
    // On a connection that is open already a request that is whole is answered before its reset is read.
    const socket = dial().say(hello());
    await socket.listen();
    await socket.say(Buffer.concat(ways.filter(({ flags }) => flags === 0).map(say))).listen();
    expect((await target.state()).calls).toBe(calls);
  });
});

describe("watches of our health", () => {
  const headers = [
    ...verifyHeaders.slice(0, 2),
    [":authority", "x"],
    [":path", "/grpc.health.v1.Health/Watch"],
    ["content-type", "application/grpc"],
  ] as const;
  const watches = (count: number) =>
    Buffer.concat(
      Array.from({ length: count }, (_, index) => [
        openRequest(2 * index + 1, headers),
        frame(frameType.data, endStream, 2 * index + 1, Buffer.alloc(5)),
      ]).flat(),
    );
  const serving = Buffer.of(0, 0, 0, 0, 2, 8, 1);
  const statusesIn = (heard: Buffer) => parseFrames(heard).filter(({ payload }) => payload.equals(serving)).length;
  /** They get trailers at once, after the headers. */
  const refusalsIn = (heard: Buffer) => {
    const answered = parseFrames(heard).filter(({ type }) => type === frameType.headers);
    return answered.length - new Set(answered.map(({ stream }) => stream)).size;
  };

  it("are bounded on a connection, and there is room again when one ends", async () => {
    const socket = dial().say(hello()).say(watches(25));
    await socket.listen();
    expect([statusesIn(socket.heard), refusalsIn(socket.heard)]).toEqual([20, 5]);
    socket.say(frame(frameType.rstStream, 0, 1, uint32(8))).say(openRequest(101, headers));
    await socket.say(frame(frameType.data, endStream, 101, Buffer.alloc(5))).listen();
    expect(statusesIn(socket.heard)).toBe(21);
  });

  it("are bounded over all connections, and do not get in the way of other requests", async () => {
    const crowd = Array.from({ length: 50 }, () => dial().say(hello()).say(watches(20)));
    await Promise.all(crowd.map((socket) => socket.listen()));
    expect(crowd.map(({ heard }) => statusesIn(heard))).toEqual(Array(50).fill(20));
    const late = dial().say(hello()).say(watches(1)).say(getRequest(3, "/livez"));
    expect(await late.listen()).toContain('{"status":"alive"}');
    expect([statusesIn(late.heard), refusalsIn(late.heard)]).toEqual([0, 1]);
  });
});

describe("a process that has just started", () => {
  const padding = Array.from({ length: 12 }, (_, index) => [`x-pad-${index}`, "x".repeat(1200)] as const);

  it.each([
    ["as small as they are", verifyHeaders],
    ["as large as they may be", [...verifyHeaders, ...padding]],
    // When the engine collects garbage is chance, and so is a few megabytes of this.
  ])("grows by less than 60 MB with 5000 incomplete streams whose headers are %s", { retry: 2 }, async (_, headers) => {
    const fresh = await startTarget();
    onTestFinished(() => fresh.stop());
    await fresh.expectUnharmed();
    const { rssBytes } = await fresh.state();
    const opened = Buffer.concat(Array.from({ length: 100 }, (_, index) => openRequest(2 * index + 1, headers)));
    const crowd = Array.from({ length: 50 }, () => new RawSocket(fresh.port).say(hello()).say(opened));
    await Promise.all(crowd.map((socket) => socket.listen()));
    await fresh.expectUnharmed();
    const grownBytes = (await fresh.state()).rssBytes - rssBytes;
    for (const socket of crowd) socket.hangUp();
    expect(grownBytes).toBeLessThan(60 * megabyte);
  });
});
