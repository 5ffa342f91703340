import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { type Http1Case, http1Cases, verify } from "./hostile/http1-cases.ts";
import { http2Cases } from "./hostile/http2-cases.ts";
import {
  endStream,
  frame,
  frameType,
  getRequest,
  hello,
  openRequest,
  parseFrames,
  uint32,
} from "./hostile/http2-frames.ts";
import { startTarget, type Target } from "./hostile/start-target.ts";

/* Connections as no honest client makes them, against a process that waits for its clients as long as the service does. */

/** Ends a hang. */
const patienceMs = 120_000;

let target: Target;
const dial = () => target.dial();

beforeAll(async () => {
  target = await startTarget("patient");
});

afterEach(async () => {
  target.hangUpAll();
  await target.expectUnharmed();
  await target.expectNoConnections(patienceMs);
});

afterAll(() => target.stop());

describe("over HTTP/1.1", () => {
  it("every hostile request gets the right answers, each refusal as JSON and without a value", async () => {
    const problems = await Promise.all(http1Cases.map(problemsOf));
    expect(problems.flat()).toEqual([]);
  });

  const answersIn = (heard: string) => heard.split(/HTTP\/1\.1 (?=\d)/).slice(1);

  async function problemsOf({ name, say, statuses }: Http1Case): Promise<string[]> {
    const socket = dial().say(say);
    await socket.hear((soFar) => answersIn(soFar.toString("latin1")).length >= statuses.length);
    // What was said is answered before the connection ends, also what should not have been.
    const heard = await socket.finish().hear(() => false);
    const answers = answersIn(heard);
    const got = answers.map((answer) => Number(answer.slice(0, 3)));
    if (String(got) !== String(statuses)) return [`${name}: answered with ${got} instead of ${statuses}`];
    if (heard.includes("cnry")) return [`${name}: repeats what was said: ${heard}`];
    const isRefusal = (answer: string) =>
      /^4\d\d .*\r\ncontent-type: application\/json\r\n.*\r\nx-request-id: (req_\w+)\r\n.*"requestId":"\1"(,"violations":\[.*\])?\}\}$/is.test(
        answer,
      );
    return answers
      .filter((answer) => answer.startsWith("4") && !isRefusal(answer))
      .map((answer) => `${name}: ${answer}`);
  }
});

describe("over HTTP/2", () => {
  it("every hostile request costs at most the connection, and no value is repeated", async () => {
    const heard = await Promise.all(
      Object.values(http2Cases).map((frames) => dial().say(hello()).say(frames).listen()),
    );
    expect(heard.filter((text) => text.includes("cnry"))).toEqual([]);
    // Two of them are not hostile at all.
    const good = dial()
      .say(hello())
      .say(http2Cases["a good request"] as Buffer);
    expect(await good.hear((soFar) => soFar.includes("NOT_FOUND"))).toContain("NOT_FOUND");
    const many = dial()
      .say(hello())
      .say(http2Cases["100 requests at once"] as Buffer);
    const answersIn = (soFar: string | Buffer) => soFar.toString("latin1").split('{"status":"alive"}').length - 1;
    expect(answersIn(await many.hear((soFar) => answersIn(soFar) === 100))).toBe(100);
  });

  it("no more than 100 streams are open at once on a connection", async () => {
    const socket = dial().say(hello());
    for (let stream = 1; stream <= 2 * 150; stream += 2) socket.say(openRequest(stream));
    // The answer to a ping comes after those to what was said before it.
    socket.say(frame(frameType.ping, 0, 0, Buffer.alloc(8)));
    await socket.hear((soFar) => parseFrames(soFar).some(({ type }) => type === frameType.ping));
    const refusedStream = 7;
    const resets = () => parseFrames(socket.heard).filter(({ type }) => type === frameType.rstStream);
    await socket.hear(() => resets().length >= 50);
    expect(resets().map(({ payload }) => payload.readUInt32BE())).toEqual(Array(50).fill(refusedStream));
  });

  it("5000 streams opened and reset at once cost their connection, not the service", async () => {
    const reset = (stream: number) => frame(frameType.rstStream, 0, stream, uint32(8));
    const streams = Array.from({ length: 5000 }, (_, index) => 2 * index + 1);
    const socket = dial().say(hello());
    socket.say(Buffer.concat(streams.flatMap((stream) => [openRequest(stream), reset(stream)])));
    await target.expectUnharmed();
    await socket.closed;
    expect(parseFrames(socket.heard).map(({ type }) => type)).toContain(frameType.goAway);
  });
});

describe.each(["politely", "abruptly"] as const)("a client that hangs up %s", (how) => {
  const body = frame(frameType.data, endStream, 1, Buffer.from('{"key":"x"}'));
  it.each([
    ["HTTP/1.1", Buffer.from(verify)],
    ["HTTP/2", Buffer.concat([hello(), openRequest(1), body])],
  ])("after any number of bytes of %s causes no error", async (_, bytes) => {
    for (let length = 0; length <= bytes.length; length++) {
      const socket = dial().say(bytes.subarray(0, length));
      setTimeout(() => socket.hangUp(how), length % 7);
    }
    await Promise.all(target.sockets.map(({ closed }) => closed));
  });

  it("while its answer is being sent causes no error", async () => {
    for (let round = 0; round < 50; round++) {
      const socket = dial().say(
        round % 2 ? verify.repeat(20) : Buffer.concat([hello(), getRequest(1, "/openapi.json")]),
      );
      setTimeout(() => socket.hangUp(how), round / 10);
    }
    await Promise.all(target.sockets.map(({ closed }) => closed));
  });
});
