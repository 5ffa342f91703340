import type { SeededRandom } from "../../domain/seeded-random.ts";
import { http2Cases } from "../../faults/hostile/http2-cases.ts";
import {
  endHeaders,
  endStream,
  frame,
  frameType,
  getRequest,
  headerBlock,
  hello,
  openRequest,
  uint32,
  verifyHeaders,
} from "../../faults/hostile/http2-frames.ts";

/** What one connection sends. */
export interface Http2Script {
  readonly bytes: Buffer;
  /** Streams whose requests are whole and must be answered. None where anything about the connection is wrong. */
  readonly wholeStreams: readonly number[];
}

export type Temper = "valid" | "nearly valid" | "hostile";

/** A connection with a few streams whose frames are mixed; changed a little, or a lot. */
export function generateHttp2(key: string, temper: Temper, random: SeededRandom): Http2Script {
  const streams = Array.from({ length: random.integer(1, 12) }, (_, index) => makeStream(2 * index + 1, key, random));
  const frames = mix(streams, random);
  const wholeStreams = streams.filter(({ isWhole }) => isWhole).map(({ id }) => id);
  const grownWindow = frame(frameType.windowUpdate, 0, 0, uint32(0x1000000));
  const start = [hello([4, 0x100000]), grownWindow];
  if (temper === "valid") return { bytes: Buffer.concat([...start, ...frames]), wholeStreams };
  const changes = temper === "nearly valid" ? 1 : random.integer(2, 8);
  for (let change = 0; change < changes; change++) changeOne(frames, random);
  return { bytes: Buffer.concat([...start, ...frames]), wholeStreams: [] };
}

interface GeneratedStream {
  readonly id: number;
  readonly frames: Buffer[];
  readonly isWhole: boolean;
}

type Kind = (id: number, key: string, random: SeededRandom) => { frames: Buffer[]; isWhole: boolean };

function makeStream(id: number, key: string, random: SeededRandom): GeneratedStream {
  return { id, ...random.pick(kinds)(id, key, random) };
}

const reset = (id: number, random: SeededRandom) =>
  frame(frameType.rstStream, 0, id, uint32(random.pick([0, 2, 5, 7, 8, 8, 8, 99])));
const whole = (frames: Buffer[]) => ({ frames, isWhole: true });
const partial = (frames: Buffer[]) => ({ frames, isWhole: false });

const kinds: readonly Kind[] = [
  (id, key, random) => whole([openRequest(id), ...data(id, jsonBody(key), random)]),
  (id, key, random) =>
    whole([openRequest(id, grpcHeaders("latchkey.v1.KeysService/VerifyKey")), ...data(id, grpcBody(key), random)]),
  (id) => whole([getRequest(id, "/livez")]),
  (id, key, random) =>
    whole([openRequest(id, [...verifyHeaders, ["expect", "100-continue"]]), ...data(id, jsonBody(key), random)]),
  // Headers in two frames, which nothing may come between.
  (id, key, random) => {
    const block = headerBlock(verifyHeaders);
    const cut = random.integer(0, block.length);
    const headers = [
      frame(frameType.headers, 0, id, block.subarray(0, cut)),
      frame(frameType.continuation, endHeaders, id, block.subarray(cut)),
    ];
    return whole([Buffer.concat(headers), ...data(id, jsonBody(key), random)]);
  },
  (id, key) => whole([openRequest(id), frame(frameType.data, 0, id, jsonBody(key)), trailers(id)]),
  // Not whole: reset somewhere, or never finished.
  (id, key, random) => {
    const frames = [openRequest(id, random.pick(headersToReset)), ...data(id, jsonBody(key), random)];
    frames.splice(random.integer(1, frames.length), frames.length, reset(id, random));
    return partial(frames);
  },
  (id, key, random) =>
    partial([openRequest(id, random.pick(headersToReset)), ...data(id, jsonBody(key), random), reset(id, random)]),
  (id) => partial([openRequest(id)]),
  (id, _, random) =>
    partial([
      openRequest(id, grpcHeaders("grpc.health.v1.Health/Watch")),
      frame(frameType.data, endStream, id, Buffer.alloc(5)),
      ...(random.chance(0.7) ? [reset(id, random)] : []),
    ]),
];

function jsonBody(key: string): Buffer {
  return Buffer.from(JSON.stringify({ key }));
}

function grpcBody(key: string): Buffer {
  const message = Buffer.concat([Buffer.of(0x0a, key.length), Buffer.from(key)]);
  return Buffer.concat([Buffer.of(0), uint32(message.length), message]);
}

function grpcHeaders(method: string): readonly (readonly [string, string])[] {
  return [
    [":method", "POST"],
    [":scheme", "http"],
    [":path", `/${method}`],
    [":authority", "localhost"],
    ["content-type", "application/grpc"],
    ["te", "trailers"],
  ];
}

const headersToReset = [
  verifyHeaders,
  [...verifyHeaders, ["expect", "100-continue"] as const],
  [...verifyHeaders, ["expect", "something else"] as const],
  grpcHeaders("latchkey.v1.KeysService/VerifyKey"),
  grpcHeaders("grpc.health.v1.Health/Watch"),
  grpcHeaders("latchkey.v1.KeysService/Nothing"),
  [[":method", "CONNECT"] as const, [":authority", "x:443"] as const],
];

/** A body in up to three frames, some of them padded. */
function data(id: number, body: Buffer, random: SeededRandom): Buffer[] {
  const cuts = [0, random.integer(0, body.length), random.integer(0, body.length), body.length].sort((a, b) => a - b);
  return [0, 1, 2].map((piece) => {
    const part = body.subarray(cuts[piece], cuts[piece + 1]);
    const end = piece === 2 ? endStream : 0;
    const padding = random.integer(0, 20);
    if (random.chance(0.7)) return frame(frameType.data, end, id, part);
    return frame(frameType.data, end | 0x8, id, Buffer.concat([Buffer.of(padding), part, Buffer.alloc(padding)]));
  });
}

function trailers(id: number): Buffer {
  return frame(frameType.headers, endHeaders | endStream, id, headerBlock([["x-trailer", "a"]]));
}

/** The streams' frames in any order that keeps each stream's own, and opens the streams one after the other. */
function mix(streams: readonly GeneratedStream[], random: SeededRandom): Buffer[] {
  const waiting = streams.map(({ frames }) => [...frames]);
  const open: Buffer[][] = [];
  const mixed: Buffer[] = [];
  while (waiting.length > 0 || open.length > 0) {
    if (random.chance(0.15)) mixed.push(random.pick(betweenStreams)(random));
    const isOpening = waiting.length > 0 && (open.length === 0 || random.chance(0.5));
    const frames = isOpening ? (waiting.shift() as Buffer[]) : random.pick(open);
    if (isOpening) open.push(frames);
    mixed.push(frames.shift() as Buffer);
    if (frames.length === 0) open.splice(open.indexOf(frames), 1);
  }
  return mixed;
}

/** What a good client may send at any time. */
const betweenStreams: readonly ((random: SeededRandom) => Buffer)[] = [
  () => frame(frameType.ping, 0, 0, Buffer.alloc(8)),
  () => frame(frameType.settings, 0, 0),
  (random) => frame(frameType.windowUpdate, 0, 0, uint32(random.integer(1, 1000))),
  (random) => frame(random.integer(20, 255), random.integer(0, 255), 0, Buffer.alloc(random.integer(0, 30))),
];

const cases = Object.values(http2Cases).filter((bytes) => bytes.length < 20_000);

/** Changes the frames in place. Each is one thing that no good client does. */
function changeOne(frames: Buffer[], random: SeededRandom): void {
  if (frames.length === 0) frames.push(frame(frameType.ping, 0, 0, Buffer.alloc(8)));
  const at = random.integer(0, frames.length - 1);
  const found = Buffer.from(frames[at] as Buffer);
  const stream = 2 * random.integer(0, 12) + random.pick([1, 1, 1, 0]);
  random.pick([
    () => frames.splice(at, 1),
    () => frames.splice(at, 0, found),
    () => frames.splice(random.integer(0, frames.length), 0, ...frames.splice(at, 1)),
    () => frames.splice(at, 0, reset(stream, random)),
    () => frames.splice(at, 0, random.pick(cases)),
    () =>
      frames.splice(
        at,
        0,
        frame(random.integer(0, 12), random.integer(0, 255), stream, Buffer.alloc(random.integer(0, 20))),
      ),
    () => frames.splice(at, 0, frame(frameType.goAway, 0, 0, Buffer.alloc(8))),
    () => frames.splice(at, 0, frame(frameType.windowUpdate, 0, stream, uint32(random.pick([0, 0x7fffffff])))),
    () => {
      // Any byte: of the length, type, flags, stream or payload.
      if (found.length === 0) return;
      const byte = random.integer(0, found.length - 1);
      found.writeUInt8(found.readUInt8(byte) ^ (1 << random.integer(0, 7)), byte);
      frames[at] = found;
    },
    () => {
      if (found.length >= 9) found.writeUInt32BE(stream, 5);
      frames[at] = found;
    },
    () => {
      frames[at] = found.subarray(0, random.integer(0, found.length));
    },
  ])();
}
