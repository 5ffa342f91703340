import { once } from "node:events";
import net from "node:net";
import { formatKey } from "../../../src/domain/key-format.ts";
import type { SeededRandom } from "../../domain/seeded-random.ts";
import { http1Cases } from "../../faults/hostile/http1-cases.ts";
import { readCorpus } from "../corpus.ts";
import { mutateRequest } from "../reader/mutate-request.ts";
import { type Attack, type Field, pauseMs, repeatUntil } from "./field.ts";
import { pipeline, sendSlowly, verifyRequest } from "./pipeline.ts";

/* Attacks over HTTP/1.1. None needs a credential, except for the keys that it verifies. */

/** A pause between connections: budgets per connection cannot stop a flood of new ones, so that is not tested. */
const betweenConnectionsMs = 5;

export const http1Attacks: Readonly<Record<string, Attack>> = {
  "pipelines of unknown keys": (field) =>
    repeatUntil(field, 6, () => {
      const count = field.random.integer(2000, 6000);
      const requests = Array.from({ length: count }, () => verifyRequest(unknownKey(field.random)));
      return pipeline(field.port, Buffer.from(requests.join("")), count);
    }),

  "pipelines of a counted key": (field) =>
    repeatUntil(field, 3, () => {
      const count = field.random.integer(200, 600);
      return pipeline(field.port, Buffer.from(verifyRequest(field.keys.counted).repeat(count)), count);
    }),

  "pipelines on connections that Node has been given": (field) =>
    repeatUntil(field, 6, () => {
      const count = field.random.integer(1000, 3000);
      const chunked = "POST /livez HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
      return pipeline(
        field.port,
        Buffer.from(chunked + "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n".repeat(count)),
        count + 1,
      );
    }),

  "a counted key, then 45000 answers of 16 KB": (field) => {
    const [counted, big] = [300, 45_000];
    const requests = verifyRequest(field.keys.counted).repeat(counted) + verifyRequest(field.keys.big).repeat(big);
    return pipeline(field.port, Buffer.from(requests), counted + big);
  },

  "clients that read no answers": (field) => sendWithoutReading(field, verifyRequest(field.keys.big), 50),

  "bytes upon bytes behind a request that waits": (field) =>
    sendWithoutReading(field, verifyRequest(unknownKey(field.random)), 100, verifyRequest(field.keys.counted)),

  "broken requests with resets anywhere": (field) => {
    const corpus = [
      ...readCorpus().map(({ bytes }) => bytes),
      ...http1Cases.map(({ say }) => Buffer.from(say as string)),
    ];
    return repeatUntil(field, 10, async () => {
      await pauseMs(betweenConnectionsMs);
      const { random } = field;
      const whole = random.pick(corpus);
      const bytes = random.chance(0.5) ? whole : mutateRequest(whole, corpus, random);
      const isInternal = field.internalPort !== undefined && random.chance(0.2);
      return breakOff(isInternal ? (field.internalPort as number) : field.port, bytes, random);
    });
  },

  "CONNECT with a reset": (field) => {
    const connect = "CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n";
    return repeatUntil(field, 10, async () => {
      await pauseMs(betweenConnectionsMs);
      const { random } = field;
      const before = random.chance(0.3) ? verifyRequest(field.keys.plain) : "";
      const isInternal = field.internalPort !== undefined && random.chance(0.4);
      return breakOff(isInternal ? (field.internalPort as number) : field.port, Buffer.from(before + connect), random);
    });
  },
};

/** Looked up in the store, unlike one whose checksum is wrong. */
function unknownKey(random: SeededRandom): string {
  return formatKey(
    undefined,
    Uint8Array.from({ length: 24 }, () => random.integer(0, 255)),
  ).key;
}

/** Many connections send as much as is taken from them, read nothing, and go away after a while. */
async function sendWithoutReading(
  { port, untilMs }: Field,
  request: string,
  count: number,
  first = "",
): Promise<string[]> {
  const bytes = Buffer.from(first + request.repeat(Math.ceil(4_000_000 / request.length)));
  const sockets = Array.from({ length: count }, () => {
    const socket = net.connect({ port, host: "127.0.0.1" }).pause();
    return socket.on("error", () => {});
  });
  await Promise.all(sockets.map((socket) => sendSlowly(socket, bytes, 65_536, 1000)));
  await pauseMs(Math.max(0, untilMs - performance.now()));
  for (const socket of sockets) socket.resetAndDestroy();
  return [];
}

/** Sends some of it, in up to three pieces, and ends the connection one way or the other. */
async function breakOff(port: number, bytes: Buffer, random: SeededRandom): Promise<string[]> {
  const socket = net.connect({ port, host: "127.0.0.1", noDelay: true, allowHalfOpen: true });
  socket.on("error", () => {}).resume();
  const closed = once(socket, "close").catch(() => {});
  const length = random.chance(0.5) ? bytes.length : random.integer(0, bytes.length);
  const cuts = [0, random.integer(0, length), random.integer(0, length), length].sort((a, b) => a - b);
  for (let piece = 0; piece < 3; piece++) {
    socket.write(bytes.subarray(cuts[piece], cuts[piece + 1]));
    if (random.chance(0.3)) await pauseMs(random.integer(0, 3));
  }
  if (random.chance(0.4)) await pauseMs(random.integer(0, 5));
  if (random.chance(0.7)) socket.resetAndDestroy();
  else {
    socket.end();
    await Promise.race([closed, pauseMs(random.integer(0, 50))]);
    socket.destroy();
  }
  await closed;
  return [];
}
