import { gzipSync } from "node:zlib";
import { Code } from "@connectrpc/connect";
import { bytes, double, metaEntry, metaOf, nestedStructs, text, valueBytes, varint } from "../decoding/build-wire.ts";
import { encode, frame, type Protocol } from "../protocols.ts";
import { type BadRequest, bad, badProto, goodBodyOf, rpcProtocols, textCanary } from "./bad-request.ts";

/* Faults below the fields: unreadable protobuf, frames with wrong lengths, headers of the RPC protocols. */

const apiId = text(1, textCanary);
const withApiId = (...parts: Uint8Array[]) => Buffer.concat([apiId, ...parts]);
const invalidUtf8 = Buffer.from([0x63, 0x6e, 0x72, 0x79, 0xff]);

export const malformedProtobuf: BadRequest[] = [
  badProto("a tag cut off", "", withApiId(Buffer.from([0x80]))),
  badProto("a length beyond the end", "", Buffer.from([0x0a, 0x7f, 0x63, 0x6e, 0x72, 0x79])),
  badProto("a number cut off", "", withApiId(Buffer.from([0x28, 0xff]))),
  badProto("a number of eleven bytes", "", withApiId(Buffer.from([0x28, ...Array(10).fill(0xff), 1]))),
  badProto("field number zero", "", withApiId(Buffer.from([0x02, 0x00]))),
  badProto("a group that never ends", "", withApiId(Buffer.from([0x0b]))),
  badProto("the end of no group", "", withApiId(Buffer.from([0x0c]))),
  badProto("wire type 7", "", withApiId(Buffer.from([0x0f]))),
  badProto("text instead of protobuf", "", Buffer.from('{"apiId":"cnry"}')),
  badProto("an unknown field number", "", withApiId(varint(99, 7391))),
  badProto("an unknown field number in refill", "refill", withApiId(bytes(6, varint(99, 7391)))),
  badProto("a number for a text", "apiId", varint(1, 7391)),
  badProto("a text for a number", "remaining", withApiId(text(5, textCanary))),
  badProto("the same field twice", "", withApiId(apiId)),
  badProto("invalid UTF-8", "", bytes(1, invalidUtf8)),
  badProto("NUL in a text of protobuf", "apiId", text(1, `${textCanary}\0`)),
  badProto("a byte order mark in a text", "apiId", text(1, `\ufeff${textCanary}`)),
  badProto("expires NaN", "expires", withApiId(double(10, Number.NaN))),
  badProto("expires infinite", "expires", withApiId(double(10, Number.POSITIVE_INFINITY))),
  badProto("meta with __proto__", "meta", withApiId(metaOf({ ["__proto__"]: textCanary }))),
  badProto("meta with an invalid name", "", withApiId(metaEntry(invalidUtf8, valueBytes(7391)))),
  badProto("meta with a value of no kind", "meta", withApiId(metaEntry(textCanary, Buffer.alloc(0)))),
  badProto("meta nested 1000 deep", "meta", withApiId(nestedStructs(1000))),
];

const framed = rpcProtocols.filter((protocol) => protocol.framed);
const unframed = rpcProtocols.filter((protocol) => !protocol.framed);

function badFrame(name: string, reframe: (frame: Uint8Array) => Uint8Array, rest: Partial<BadRequest> = {}) {
  const body = (protocol: Protocol) => reframe(encode(protocol, "createKey", goodBodyOf("createKey")));
  return bad(name, "createKey", { on: framed, field: "", body, ...rest });
}

const tooManyBytes = Buffer.alloc(10);
const unsupported = { code: "UNSUPPORTED_MEDIA_TYPE", rpc: Code.Unimplemented } as const;

export const frames: BadRequest[] = [
  badFrame("no frame", () => Buffer.alloc(0)),
  badFrame("three bytes of a frame", (whole) => whole.subarray(0, 3)),
  badFrame("a frame without its message", (whole) => whole.subarray(0, 5)),
  badFrame("a frame cut off", (whole) => whole.subarray(0, -1)),
  badFrame("bytes behind the frame", (whole) => Buffer.concat([whole, tooManyBytes])),
  badFrame("two frames", (whole) => Buffer.concat([whole, whole])),
  badFrame("a frame that says 4 GiB", (whole) => frame(whole.subarray(5), { length: 0xffffffff })),
  badFrame("a frame that says nothing follows", (whole) => frame(whole.subarray(5), { length: 0 })),
  badFrame("a compressed frame", (whole) => frame(gzipSync(whole.subarray(5)), { flag: 1 }), {
    ...unsupported,
    headers: { "grpc-encoding": "gzip" },
  }),
  badFrame("a frame that says it is compressed", (whole) => frame(whole.subarray(5), { flag: 1 }), unsupported),
  badFrame("a frame of trailers", (whole) => frame(whole.subarray(5), { flag: 0x80 }), unsupported),
  ...["gzip", "br", textCanary, "identity, gzip"].map((encoding) =>
    badFrame(`grpc-encoding: ${encoding}`, (whole) => whole, {
      ...unsupported,
      headers: { "grpc-encoding": encoding },
    }),
  ),
];

const grpcTimeouts = ["", "7391", "-7391S", "7391x", "739112345S", "S", "7391 S", "7391.5S", textCanary];
const connectTimeouts = ["", "-7391", "7391.5", "73911234567", "7391S", "0x7391", textCanary];

function badTimeout(name: string, value: string, on: readonly Protocol[]): BadRequest {
  return bad(`${name}: ${value}`, "verifyKey", { on, headers: { [name]: value }, field: name });
}

export const rpcHeaders: BadRequest[] = [
  ...grpcTimeouts.map((value) => badTimeout("grpc-timeout", value, framed)),
  ...connectTimeouts.map((value) => badTimeout("connect-timeout-ms", value, unframed)),
  ...["gzip", "br", textCanary].map((encoding) =>
    bad(`content-encoding: ${encoding}`, "verifyKey", {
      on: unframed,
      ...unsupported,
      headers: { "content-encoding": encoding },
    }),
  ),
];
