import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
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
import type { RawSocket } from "./hostile/raw-socket.ts";
import { startTarget, type Target } from "./hostile/start-target.ts";

/* HTTP/2 streams that are reset, stay incomplete or stay open, against a process that waits as long as the service does. */

let target: Target;
const dial = () => target.dial();

const alive = '{"status":"alive"}';

/** Resolves when everything that was said so far has been answered: a question about it comes last. */
async function answered(socket: RawSocket, stream: number): Promise<string> {
  const already = socket.heard.toString("latin1").split(alive).length;
  socket.say(getRequest(stream, "/livez"));
  return socket.hear((heard) => heard.toString("latin1").split(alive).length > already);
}

beforeAll(async () => {
  target = await startTarget("patient");
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
      const socket = dial().say(Buffer.concat([hello(), opened, reset(1), getRequest(3, "/livez")]));
      expect(await socket.hear((heard) => heard.includes(alive))).toContain(alive);
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
    await answered(dial().say(Buffer.concat([hello(), ...ways.map(say)])), 1001);
    // On a connection that is open already a request that is whole is answered before its reset is read.
    const socket = dial().say(hello());
    await socket.hear((heard) => heard.length > 0);
    await answered(socket.say(Buffer.concat(ways.filter(({ flags }) => flags === 0).map(say))), 1001);
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
  /** They get headers that end the stream. */
  const refusalsIn = (heard: Buffer) =>
    parseFrames(heard).filter(({ type, flags }) => type === frameType.headers && (flags & endStream) !== 0).length;

  it("are bounded on a connection, and there is room again when one ends", async () => {
    const socket = dial().say(hello()).say(watches(25));
    await socket.hear((heard) => statusesIn(heard) + refusalsIn(heard) === 25);
    expect([statusesIn(socket.heard), refusalsIn(socket.heard)]).toEqual([20, 5]);
    socket.say(frame(frameType.rstStream, 0, 1, uint32(8))).say(openRequest(101, headers));
    socket.say(frame(frameType.data, endStream, 101, Buffer.alloc(5)));
    await socket.hear((heard) => statusesIn(heard) + refusalsIn(heard) > 25);
    expect(statusesIn(socket.heard)).toBe(21);
  });

  it("are bounded over all connections, and do not get in the way of other requests", async () => {
    const crowd = Array.from({ length: 50 }, () => dial().say(hello()).say(watches(20)));
    await Promise.all(crowd.map((socket) => socket.hear((heard) => statusesIn(heard) + refusalsIn(heard) === 20)));
    expect(crowd.map(({ heard }) => statusesIn(heard))).toEqual(Array(50).fill(20));
    const late = dial().say(hello()).say(watches(1)).say(getRequest(3, "/livez"));
    await late.hear((heard) => heard.includes(alive) && statusesIn(heard) + refusalsIn(heard) > 0);
    expect(late.heard.toString("latin1")).toContain(alive);
    expect([statusesIn(late.heard), refusalsIn(late.heard)]).toEqual([0, 1]);
  });
});
