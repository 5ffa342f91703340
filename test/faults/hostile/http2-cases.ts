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
} from "./http2-frames.ts";

/* Hostile bytes over HTTP/2. The process must survive each of them, and the connection must end. */

const body = Buffer.from('{"key":"cnry"}');
const header = (name: string, value: string) => [...verifyHeaders, [name, value] as const];
const without = (name: string) => verifyHeaders.filter(([candidate]) => candidate !== name);
const whole = (stream: number, headers = verifyHeaders) =>
  Buffer.concat([openRequest(stream, headers), frame(frameType.data, endStream, stream, body)]);
const reset = (stream: number, code: number) => frame(frameType.rstStream, 0, stream, uint32(code));
const many = (count: number, make: (stream: number) => Buffer) =>
  Buffer.concat(Array.from({ length: count }, (_, index) => make(2 * index + 1)));
const connect = openRequest(1, [
  [":method", "CONNECT"],
  [":authority", "cnry:443"],
]);

export const http2Cases: Readonly<Record<string, Buffer>> = {
  "a good request": whole(1),
  "a path that is not there, with a body": whole(1, [...without(":path"), [":path", "/cnry"]]),
  "a body without end for a path that is not there": Buffer.concat([
    openRequest(1, [...without(":path"), [":path", "/cnry"]]),
    frame(frameType.data, 0, 1, Buffer.alloc(16_000)),
  ]),
  trailers: Buffer.concat([
    openRequest(1),
    frame(frameType.data, 0, 1, body),
    frame(frameType.headers, endHeaders | endStream, 1, headerBlock([["x-cnry", "cnry"]])),
  ]),
  "trailers with a pseudo-header": Buffer.concat([
    openRequest(1),
    frame(frameType.headers, endHeaders | endStream, 1, headerBlock([[":path", "/cnry"]])),
  ]),
  "CONNECT, then a reset with an error": Buffer.concat([connect, reset(1, 2)]),
  "Expect, then a reset with an error": Buffer.concat([openRequest(1, header("expect", "cnry")), reset(1, 2)]),
  "a reset with every code": many(20, (stream) =>
    Buffer.concat([openRequest(stream), reset(stream, (stream - 1) / 2)]),
  ),
  "a reset that says there was no error": Buffer.concat([
    openRequest(1),
    frame(frameType.data, 0, 1, body.subarray(0, 5)),
    reset(1, 0),
  ]),
  "a length that is a lie": whole(1, header("content-length", "3")),
  "a content-length of no number": whole(1, header("content-length", "cnry")),
  "no path": whole(1, without(":path")),
  "no method": whole(1, without(":method")),
  "two paths": whole(1, header(":path", "/cnry")),
  "a pseudo-header of no kind": whole(1, header(":cnry", "cnry")),
  "a header in capitals": whole(1, header("X-Cnry", "cnry")),
  "a header with a line end": whole(1, header("x-cnry", "cnry\r\nx: y")),
  "a header of HTTP/1.1": whole(1, header("transfer-encoding", "chunked")),
  "an authority that is no host": whole(1, [...without(":authority"), [":authority", "["]]),
  "a path without a slash": whole(1, [...without(":path"), [":path", "cnry"]]),
  "an asterisk for a path": whole(1, [...without(":path"), [":path", "*"]]),
  "headers of 40 KiB": Buffer.concat([
    frame(frameType.headers, 0, 1, headerBlock(header("x-cnry", "cnry".repeat(4000)))),
    frame(frameType.continuation, 0, 1, headerBlock([["x-cnry", "cnry".repeat(4000)]])),
    frame(frameType.continuation, endHeaders, 1, headerBlock([["x-cnry", "cnry".repeat(2000)]])),
  ]),
  "500 headers": whole(1, [...verifyHeaders, ...Array.from({ length: 500 }, () => ["x-cnry", "cnry"] as const)]),
  "headers that go on in 1000 frames": Buffer.concat([
    frame(frameType.headers, 0, 1, headerBlock(verifyHeaders)),
    ...Array.from({ length: 1000 }, () => frame(frameType.continuation, 0, 1)),
  ]),
  "headers that are no HPACK": frame(frameType.headers, endHeaders, 1, Buffer.alloc(50, 0xff)),
  "headers that break off": frame(frameType.headers, endHeaders, 1, headerBlock(verifyHeaders).subarray(0, -3)),
  "something else between headers": Buffer.concat([frame(frameType.headers, 0, 1), frame(frameType.ping, 0, 0)]),
  "data before headers": frame(frameType.data, endStream, 1, body),
  "data for the connection": frame(frameType.data, endStream, 0, body),
  "data after the end": Buffer.concat([whole(1), frame(frameType.data, endStream, 1, body)]),
  "data padded beyond its length": Buffer.concat([openRequest(1), frame(frameType.data, 0x8, 1, Buffer.of(200, 1))]),
  "data beyond the window": Buffer.concat([
    openRequest(1),
    ...Array.from({ length: 300 }, () => frame(frameType.data, 0, 1, Buffer.alloc(16_000))),
  ]),
  "empty data 10000 times": Buffer.concat([openRequest(1), many(10_000, () => frame(frameType.data, 0, 1))]),
  "a frame larger than allowed": Buffer.concat([openRequest(1), frame(frameType.data, 0, 1, Buffer.alloc(20_000))]),
  "a frame of an unknown type": Buffer.concat([frame(99, 255, 0, body), whole(1)]),
  "a frame that is cut off": openRequest(1).subarray(0, 20),
  "an even stream": openRequest(2),
  "a stream older than the last": Buffer.concat([whole(5), openRequest(1)]),
  "a stream that depends on itself": frame(frameType.priority, 0, 1, Buffer.concat([uint32(1), Buffer.of(1)])),
  "a push": frame(frameType.pushPromise, endHeaders, 1, uint32(2)),
  "a reset of nothing": reset(1, 8),
  "a window that grows by nothing": frame(frameType.windowUpdate, 0, 0, uint32(0)),
  "a window that grows beyond all bounds": many(2, () => frame(frameType.windowUpdate, 0, 0, uint32(0x7fffffff))),
  "settings that are no settings": frame(frameType.settings, 0, 0, Buffer.alloc(5)),
  "settings out of bounds": hello([4, 0xffffffff]).subarray(24),
  "settings of a table of 4 GiB": Buffer.concat([hello([1, 0xffffffff]).subarray(24), whole(1)]),
  "settings for a stream": frame(frameType.settings, 0, 1),
  "10000 settings": many(10_000, () => frame(frameType.settings, 0, 0)),
  "10000 pings": many(10_000, () => frame(frameType.ping, 0, 0, Buffer.alloc(8))),
  "10000 priorities": many(10_000, (stream) => frame(frameType.priority, 0, stream, Buffer.alloc(5))),
  "a ping of the wrong size": frame(frameType.ping, 0, 0, Buffer.alloc(7)),
  "a farewell, and a request after it": Buffer.concat([frame(frameType.goAway, 0, 0, Buffer.alloc(8)), whole(1)]),
  "the preface again": Buffer.concat([hello(), hello()]),
  "100 requests at once": many(100, (stream) => getRequest(stream, "/livez")),
};
