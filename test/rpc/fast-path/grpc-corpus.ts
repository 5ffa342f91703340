import { SeededRandom } from "../../domain/seeded-random.ts";
import { bytes, double, text, varint } from "../decoding/build-wire.ts";
import { frame } from "../protocols.ts";
import { longQuery } from "./json-corpus.ts";
import type { RawRequest } from "./raw-exchange.ts";

/* Requests over gRPC: good ones, bad ones, and frames that no client would send. */

export function grpcCorpus(secrets: Readonly<Record<string, string>>): RawRequest[] {
  const good = text(1, secrets.plain as string);
  return [
    ...Object.entries(secrets).flatMap(([kind, key]) =>
      Object.entries(spellings(key)).map(([how, message]) => request(`${kind} key, ${how}`, frame(message))),
    ),
    ...Object.entries(oddMessages(good)).map(([how, message]) => request(how, frame(message))),
    ...Object.entries(oddFrames(good)).map(([how, body]) => request(how, body)),
    ...Object.entries(headerSets).flatMap(([how, headers]) =>
      [good, text(1, secrets.counted as string), varint(1, 1)].map((message, n) =>
        request(`message ${n} with ${how}`, frame(message), headers),
      ),
    ),
    ...["GET", "HEAD", "PUT", "OPTIONS"].map((method) => ({ ...request(method, frame(good)), method })),
    ...paths.map((path) => ({ ...request(`at ${path}`, frame(good)), path })),
    ...inPieces(frame(good)),
    { ...request("no body at all", Buffer.alloc(0)), chunks: [] },
    ...made(secrets, 500),
  ];
}

const plainHeaders = { "content-type": "application/grpc", te: "trailers" };

function request(name: string, body: Uint8Array, headers: RawRequest["headers"] = plainHeaders): RawRequest {
  return { name: `gRPC: ${name}`, over: "HTTP/2", headers, chunks: [Buffer.from(body)] };
}

function spellings(key: string): Record<string, Buffer> {
  const field = text(1, key);
  const messages = {
    plain: [field],
    again: [field],
    "with its API": [field, text(2, "api_1")],
    "with its API first": [text(2, "api_1"), field],
    "with another API": [field, text(2, "api_2")],
    "with an empty API": [field, text(2, "")],
    "with an unknown field": [field, text(14, "api_1")],
    "with a high unknown field": [field, varint(2000, 1)],
    twice: [field, field],
    "with its API twice": [field, text(2, "api_1"), text(2, "api_1")],
    "as Unicode": [field, text(2, "äpi")],
    "with a permission": [field, text(3, "docs.read")],
    "with a query": [text(3, "docs.read AND (docs.write OR admin)"), field, text(2, "api_1")],
    "with a query of many": [field, text(3, longQuery)],
    "with a bad query": [field, text(3, "docs.read AND")],
    "with a query twice": [field, text(3, "admin"), text(3, "docs.read")],
    "with an address": [field, text(4, "10.1.2.3")],
    "with a mapped address": [field, text(4, "::ffff:10.1.2.3"), text(3, "admin")],
    "with an address of IPv6": [field, text(4, "2001:db8::1")],
    "with another address": [field, text(4, "192.0.2.1"), text(3, "nothing")],
    "with a bad address": [field, text(4, "10.1.2.3:80")],
    "with an empty address": [field, text(4, "")],
    "with a NUL": [field, text(2, "a\0")],
    "with a long length": [Buffer.of(0x0a, 0x80 | (key.length & 0x7f), key.length >> 7), Buffer.from(key)],
    "with a longer length": [
      Buffer.of(0x0a, 0x80 | (key.length & 0x7f), 0x80 | (key.length >> 7), 0),
      Buffer.from(key),
    ],
    "with a long tag": [Buffer.of(0x8a, 0x00), field.subarray(1)],
  };
  return Object.fromEntries(Object.entries(messages).map(([how, parts]) => [how, Buffer.concat(parts)]));
}

function oddMessages(good: Uint8Array): Record<string, Uint8Array> {
  const and = (...parts: Uint8Array[]) => Buffer.concat([good, ...parts]);
  const lone = [0x00, 0x07, 0x08, 0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f, 0x10, 0x12, 0x1a, 0x7a, 0x80, 0x82, 0xff];
  const invalid = ["\xff", "\xc3", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xc0\xaf", "\xef\xbb\xbf", "\xef\xbb\xbfabc"];
  return {
    "no field": Buffer.alloc(0),
    "an empty key": text(1, ""),
    "only an API": text(2, "api_1"),
    "a number for a key": varint(1, 5),
    "a double for a key": double(1, 5),
    "a number for an API": and(varint(2, 5)),
    "a key as a group": and(Buffer.of(0x0b, 0x0c)),
    "an open group": Buffer.of(0x0b),
    "a closed group": Buffer.of(0x0c),
    "field number 0": and(Buffer.of(0x02, 0x00)),
    "a field cut off": and(Buffer.of(0x12, 0x05, 0x61)),
    "a length cut off": and(Buffer.of(0x12, 0x80)),
    "a length without end": and(Buffer.of(0x12, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80)),
    "a length of four gigabytes": and(Buffer.of(0x12, 0xff, 0xff, 0xff, 0xff, 0x0f)),
    "a length over 32 bits": and(Buffer.of(0x12, 0x81, 0x80, 0x80, 0x80, 0x10, 0x61)),
    "a length of four bytes": and(Buffer.of(0x12, 0x81, 0x80, 0x80, 0x00, 0x61)),
    "a message in the API": and(bytes(2, text(1, "a"))),
    ...Object.fromEntries(lone.map((tag) => [`${tag} behind it`, and(Buffer.of(tag))])),
    ...Object.fromEntries(lone.map((tag) => [`${tag} and 0 behind it`, and(Buffer.of(tag, 0))])),
    ...Object.fromEntries(
      [16_383, 16_384, 16_385, 20_000, 65_000].map((n) => [`a key of ${n} characters`, text(1, "k".repeat(n))]),
    ),
    ...Object.fromEntries([127, 128, 255, 256].map((n) => [`an API of ${n} characters`, and(text(2, "a".repeat(n)))])),
    ...Object.fromEntries([255, 256].map((n) => [`an API of ${n} emoji`, and(text(2, "😀".repeat(n)))])),
    "a key of 16384 é": text(1, "é".repeat(16_384)),
    ...Object.fromEntries(invalid.map((each) => [`a key of ${each}`, bytes(1, Buffer.from(each, "latin1"))])),
    ...Object.fromEntries(invalid.map((each) => [`an API of ${each}`, and(bytes(2, Buffer.from(each, "latin1")))])),
  };
}

function oddFrames(good: Uint8Array): Record<string, Uint8Array> {
  const whole = frame(good);
  return {
    "an empty body": Buffer.alloc(0),
    ...Object.fromEntries([1, 4, 5, 6, whole.length - 1].map((n) => [`${n} bytes of a frame`, whole.subarray(0, n)])),
    "two frames": Buffer.concat([whole, whole]),
    "a frame and an empty one": Buffer.concat([whole, frame(Buffer.alloc(0))]),
    "an empty frame and one": Buffer.concat([frame(Buffer.alloc(0)), whole]),
    "a frame and a byte": Buffer.concat([whole, Buffer.of(0)]),
    "a compressed frame": frame(good, { flag: 1 }),
    "a frame of trailers": frame(good, { flag: 0x80 }),
    "a frame with an odd flag": frame(good, { flag: 2 }),
    "a frame that says it is longer": frame(good, { length: good.length + 1 }),
    "a frame that says it is shorter": frame(good, { length: good.length - 1 }),
    "a frame that says it is empty": frame(good, { length: 0 }),
    "a frame that says it is huge": frame(good, { length: 0xffffffff }),
    "65536 bytes": Buffer.alloc(65_536),
    "65537 bytes": Buffer.alloc(65_537),
    "a frame of 65536 bytes": frame(text(1, "k".repeat(65_536 - 9))),
    "a frame of 65537 bytes": frame(text(1, "k".repeat(65_537 - 9))),
    "a frame of 200000 bytes": frame(text(1, "k".repeat(200_000))),
    JSON: Buffer.from('{"key":"a"}'),
  };
}

const headerSets: Record<string, NonNullable<RawRequest["headers"]>> = {
  ...Object.fromEntries(
    [
      "application/grpc+proto",
      "application/grpc+json",
      "application/grpc;charset=utf-8",
      "application/grpc; charset=latin1",
      "application/grpc+thrift",
      "application/grpc-web",
      "application/grpc-web+proto",
      "application/GRPC",
      "application/grpcx",
      "application/json",
      "application/proto",
      "text/plain",
      "",
    ].map((type) => [`content type ${type}`, { ...plainHeaders, "content-type": type }]),
  ),
  "no content type": { te: "trailers" },
  "no te": { "content-type": "application/grpc" },
  ...Object.fromEntries(
    ["identity", "IDENTITY", "gzip", "", "identity,gzip", "snappy"].map((encoding) => [
      `encoding ${encoding}`,
      { ...plainHeaders, "grpc-encoding": encoding },
    ]),
  ),
  "two encodings": { ...plainHeaders, "grpc-encoding": ["identity", "identity"] },
  ...Object.fromEntries(
    ["1H", "10S", "1n", "99999999m", "100u", "0S", "", "1", "S", "1s", "-1S", "1.5S", "123456789S", "1 S", "soon"].map(
      (timeout) => [`deadline ${timeout}`, { ...plainHeaders, "grpc-timeout": timeout }],
    ),
  ),
  "two deadlines": { ...plainHeaders, "grpc-timeout": ["1S", "2S"] },
  "accepted encodings": { ...plainHeaders, "grpc-accept-encoding": "gzip,identity" },
  "a content encoding": { ...plainHeaders, "content-encoding": "gzip" },
  "expect continue": { ...plainHeaders, expect: "100-continue" },
  "expect something": { ...plainHeaders, expect: "the-unexpected" },
  "binary metadata": { ...plainHeaders, "trace-bin": "AAEC", "user-agent": "grpc-node-js/1" },
  "an authorization": { ...plainHeaders, authorization: "Bearer x" },
  "a request id": { ...plainHeaders, "x-request-id": "mine" },
  "a long header": { ...plainHeaders, "x-long": "l".repeat(8000) },
};

const paths = [
  "/latchkey.v1.KeysService/VerifyKey?",
  "/latchkey.v1.KeysService/VerifyKey?a=b",
  "/latchkey.v1.KeysService/VerifyKey/",
  "/latchkey.v1.KeysService/verifyKey",
  "/latchkey.v1.KeysService/Nothing",
  "/v1/keys.verifyKey",
  "/grpc.health.v1.Health/Check",
  "http://example.org/latchkey.v1.KeysService/VerifyKey",
];

function inPieces(body: Uint8Array): RawRequest[] {
  const whole = Buffer.from(body);
  return [1, 4, 5, 6, 20].map((at) => ({
    ...request(`in two at ${at}`, whole),
    chunks: [whole.subarray(0, at), whole.subarray(at)],
  }));
}

/** Random messages made of right and wrong parts. */
function made(secrets: Readonly<Record<string, string>>, count: number): RawRequest[] {
  const random = new SeededRandom(7);
  const texts = () =>
    random.chance(0.7) ? random.pick(Object.values(secrets)) : random.pick(["", "a", "é", "\0", "api_1"]);
  return Array.from({ length: count }, (_, n) => {
    const fields = Array.from({ length: random.integer(0, 3) }, () => {
      const number = random.pick([1, 1, 1, 2, 2, 3, 15, 16, 100]);
      if (random.chance(0.85)) return text(number, texts());
      return random.chance(0.5) ? varint(number, random.integer(0, 300)) : double(number, 1);
    });
    const message = Buffer.concat(fields);
    return request(`made ${n}`, frame(message, random.chance(0.9) ? {} : { length: random.integer(0, 100) }));
  });
}
