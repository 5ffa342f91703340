import { frame, frameType, hello, openRequest, parseFrames, preface } from "../../faults/hostile/http2-frames.ts";
import { RawSocket } from "../../faults/hostile/raw-socket.ts";
import { type Attack, pauseMs, repeatUntil } from "./field.ts";
import { pipeline, verifyRequest } from "./pipeline.ts";

/** Clients that are slow but honest: each gets its answers, if it stays within the time that it has. */
export const slowAttacks: Readonly<Record<string, Attack>> = {
  "requests of one byte at a time": (field) =>
    repeatUntil(field, 30, async () => {
      const isHttp2 = field.random.chance(0.3);
      const socket = new RawSocket(field.port);
      const body = frame(frameType.data, 1, 1, Buffer.from(JSON.stringify({ key: field.keys.plain })));
      const bytes = isHttp2
        ? Buffer.concat([hello(), openRequest(1), body])
        : Buffer.from(verifyRequest(field.random.pick([field.keys.plain, field.keys.counted])));
      for (const byte of bytes) {
        socket.say(Buffer.of(byte));
        if (field.random.chance(0.5)) await pauseMs(field.random.integer(0, 2));
      }
      const answered = () =>
        isHttp2
          ? parseFrames(socket.heard).some(({ type }) => type === frameType.data)
          : /^HTTP\/1\.1 200 /.test(socket.heard.toString("latin1", 0, 20));
      for (let waitedMs = 0; waitedMs < answerWithinMs && socket.open && !answered(); waitedMs += 5) await pauseMs(5);
      const problem = answered()
        ? []
        : [`no answer to a request sent byte by byte: ${socket.heard.toString("latin1", 0, 300)}`];
      socket.hangUp();
      return problem;
    }),

  "answers of 16 KB that are read slowly": (field) =>
    repeatUntil(field, 20, () => {
      const count = 100;
      const beforeReading = () => pauseMs(field.random.integer(1, 10));
      return pipeline(field.port, Buffer.from(verifyRequest(field.keys.big).repeat(count)), count, { beforeReading });
    }),
};

const answerWithinMs = 10_000;
const trickleEveryMs = 350;
/** Longer than a service with short time-outs waits for anything that is tried below, and shorter than the preface takes. */
const goneWithinMs = 8000;

/** Clients that are slower than a service with short time-outs allows. They must be cut off. */
export const tooSlowAttacks: Readonly<Record<string, Attack>> = {
  "too slow to finish": async (field) => {
    const tooSlow: Readonly<Record<string, [sent: Uint8Array | string, trickled: Uint8Array | string]>> = {
      "the preface of HTTP/2": ["", Buffer.concat([preface, Buffer.alloc(100)])],
      "the head of a request": ["", verifyRequest(field.keys.plain)],
      "the body of a request": [
        verifyRequest(field.keys.plain).slice(0, -60),
        verifyRequest(field.keys.plain).slice(-60),
      ],
      "a second request": [verifyRequest(field.keys.plain), verifyRequest(field.keys.plain)],
      "the body of a stream": [
        Buffer.concat([hello(), openRequest(1)]),
        frame(frameType.data, 1, 1, Buffer.alloc(300)),
      ],
    };
    const trickle = async ([name, [sent, trickled]]: [string, [Uint8Array | string, Uint8Array | string]]) => {
      const socket = new RawSocket(field.port);
      if (sent.length > 0) socket.say(sent);
      const closed = socket.trickle(trickled, trickleEveryMs).then(() => true);
      const isGone = await Promise.race([closed, pauseMs(goneWithinMs).then(() => false)]);
      socket.hangUp();
      return isGone
        ? []
        : [`a client that sends ${name} at a byte every ${trickleEveryMs} ms is still there after ${goneWithinMs} ms`];
    };
    return (await Promise.all(Object.entries(tooSlow).map(trickle))).flat();
  },
};
