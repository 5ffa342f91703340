import type { SeededRandom } from "../../domain/seeded-random.ts";
import {
  endStream,
  frame,
  frameType,
  hello,
  openRequest,
  parseFrames,
  uint32,
} from "../../faults/hostile/http2-frames.ts";
import { RawSocket } from "../../faults/hostile/raw-socket.ts";
import { type Attack, type Field, pauseMs, repeatUntil } from "./field.ts";
import { generateHttp2, type Http2Script, type Temper } from "./http2-generator.ts";

export const http2Attacks: Readonly<Record<string, Attack>> = {
  "frames, good and bad": (field) =>
    repeatUntil(field, 12, () => {
      const temper = field.random.pick<Temper>(["valid", "valid", "nearly valid", "hostile"]);
      return converse(field, generateHttp2(field.keys.plain, temper, field.random), field.random);
    }),

  "a stream that expects 100-continue, reset in the first packet": (field) =>
    repeatUntil(field, 8, async () => {
      const headers = [...openHeaders, ["expect", "100-continue"] as const];
      const bytes = Buffer.concat([hello(), openRequest(1, headers), frame(frameType.rstStream, 0, 1, uint32(8))]);
      const socket = new RawSocket(field.port).say(bytes);
      await Promise.race([socket.closed, pauseMs(field.random.integer(1, 20))]);
      socket.hangUp(field.random.pick(["politely", "abruptly"]));
      return [];
    }),

  "streams that stay incomplete": async ({ port, untilMs }) => {
    const opened = Buffer.concat(Array.from({ length: 100 }, (_, index) => openRequest(2 * index + 1)));
    return holdOpen(port, 50, Buffer.concat([hello(), opened]), untilMs);
  },

  "watchers of the service's health": async ({ port, untilMs }) => {
    const watch = (id: number) => [
      openRequest(id, watchHeaders),
      frame(frameType.data, endStream, id, Buffer.alloc(5)),
    ];
    const watches = Buffer.concat(Array.from({ length: 100 }, (_, index) => watch(2 * index + 1)).flat());
    return holdOpen(port, 100, Buffer.concat([hello(), watches]), untilMs);
  },

  "streams opened and reset at once": (field) =>
    repeatUntil(field, 4, async () => {
      const streams = Array.from({ length: 400 }, (_, index) => 2 * index + 1);
      const pair = (id: number) => [openRequest(id), frame(frameType.rstStream, 0, id, uint32(8))];
      const socket = new RawSocket(field.port).say(Buffer.concat([hello(), ...streams.flatMap(pair)]));
      await Promise.race([socket.closed, pauseMs(100)]);
      socket.hangUp();
      return [];
    }),
};

const openHeaders = [
  [":method", "POST"],
  [":scheme", "http"],
  [":path", "/v1/keys.verifyKey"],
  [":authority", "localhost"],
  ["content-type", "application/json"],
] as const;

const watchHeaders = [
  [":method", "POST"],
  [":scheme", "http"],
  [":path", "/grpc.health.v1.Health/Watch"],
  [":authority", "localhost"],
  ["content-type", "application/grpc"],
] as const;

async function holdOpen(port: number, connections: number, bytes: Buffer, untilMs: number): Promise<string[]> {
  const sockets: RawSocket[] = [];
  // One after the other: this tests streams that stay open, not how fast Node opens them.
  for (let count = 0; count < connections; count++) {
    sockets.push(new RawSocket(port).say(bytes));
    await pauseMs(25);
  }
  await pauseMs(Math.max(500, untilMs - performance.now()));
  for (const socket of sockets) socket.hangUp();
  return [];
}

const answersWithinMs = 15_000;

/** Sends a script in pieces. Where it is all valid, every whole request must be answered. */
async function converse({ port }: Field, script: Http2Script, random: SeededRandom): Promise<string[]> {
  const { bytes, wholeStreams } = script;
  const mustAnswer = wholeStreams.length > 0 && random.chance(0.7);
  const length = mustAnswer || random.chance(0.6) ? bytes.length : random.integer(0, bytes.length);
  const socket = new RawSocket(port);
  const pieces = random.pick([1, 1, 2, 5]);
  for (let piece = 0; piece < pieces; piece++) {
    socket.say(bytes.subarray(Math.floor((piece * length) / pieces), Math.floor(((piece + 1) * length) / pieces)));
    if (random.chance(0.5)) await pauseMs(random.integer(0, 2));
  }
  const missing = mustAnswer ? await waitForAnswers(socket, wholeStreams) : [];
  if (!mustAnswer) await Promise.race([socket.closed, pauseMs(random.pick([0, 0, 1, 5, 30]))]);
  socket.hangUp(random.pick(["politely", "abruptly"]));
  await socket.closed;
  if (missing.length === 0) return [];
  return [`streams ${missing} of ${wholeStreams} stayed without an answer: ${bytes.toString("base64").slice(0, 4000)}`];
}

async function waitForAnswers(socket: RawSocket, streams: readonly number[]): Promise<readonly number[]> {
  const giveUpMs = performance.now() + answersWithinMs;
  for (;;) {
    const wasOpen = socket.open;
    const missing = streams.filter((stream) => !answeredStreams(socket).has(stream));
    if (missing.length === 0 || !wasOpen || performance.now() > giveUpMs) return missing;
    await Promise.race([socket.closed, pauseMs(5)]);
  }
}

function answeredStreams(socket: RawSocket): ReadonlySet<number> {
  const isEnd = (type: number) => type === frameType.data || type === frameType.headers;
  const ends = parseFrames(socket.heard).filter(({ type, flags }) => isEnd(type) && (flags & endStream) !== 0);
  return new Set(ends.map(({ stream }) => stream));
}
