import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib";
import { Code } from "@connectrpc/connect";
import type { Protocol } from "../protocols.ts";
import { type BadRequest, bad, gatewayProtocols, rpcProtocols, textCanary } from "./bad-request.ts";

/* Faults that are found before a body is read: paths, methods, content types, encodings, sizes. */

const nowhere = [
  "/v1",
  "/v1/keys",
  "/v1/keys.createkey",
  "/V1/keys.createKey",
  "/v1/keys.createKey/",
  "/v1/keys.createKey/cnry-7391",
  "//v1/keys.createKey",
  "/v2/keys.createKey",
  "/v1/../v1/keys.createKey",
  "/v1/keys%2EcreateKey",
  "/v1/keys.createKey%00",
  "/v1/keys.createKey;cnry=7391",
  "/v1/keys.cnry",
  `/${"cnry".repeat(1000)}`,
  "/metrics",
  "/favicon.ico",
  "/__proto__",
  "/constructor",
  "/latchkey.v1.KeysService",
  "/latchkey.v1.KeysService/Cnry",
  "/latchkey.v1.CnryService/CreateKey",
];
const notAllowed = ["GET", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND"];
const notJson = [
  undefined,
  "",
  "cnry",
  "application/x-www-form-urlencoded",
  "multipart/form-data; boundary=cnry",
  "application/xml",
  "text/plain",
  "text/json",
  "application/jsonp",
  "application/vnd.api+json",
  "application/json; charset=latin1",
  "application/json; charset=utf-16",
  "application/json; boundary=cnry",
  "application/json; charset=utf-8; cnry=7391",
  "application/json, text/plain",
  "application/grpc",
  "application/proto",
];
const notRpc = [
  undefined,
  "",
  "cnry",
  "text/plain",
  "application/xml",
  "application/x-protobuf",
  "application/json; charset=latin1",
  "application/proto; cnry=7391",
  "application/grpc; boundary=cnry",
  "application/grpc+cnry",
  "application/connect+json",
  "application/connect+proto",
];
const good = Buffer.from('{"key":"cnry"}');
/** Bytes for a decompressor. */
const compressed: [string, Uint8Array][] = [
  ["gzip", gzipSync(good)],
  ["GZIP", gzipSync(Buffer.alloc(50_000_000, " "))],
  ["br", brotliCompressSync(good)],
  ["deflate", deflateSync(good)],
  ["gzip, gzip", gzipSync(gzipSync(good))],
  ["x-gzip", gzipSync(good)],
  ["zstd", good],
  ["identity, gzip", good],
  [textCanary, good],
];

const bodyBytesMax = 65_536;
const large: [string, (protocol: Protocol) => Uint8Array][] = [
  ["a byte too many", () => Buffer.alloc(bodyBytesMax + 1, "cnry")],
  ["a megabyte too many", () => Buffer.alloc(1_000_000, "cnry")],
  ["good JSON, but too large", () => Buffer.from(`{"key":"cnry"${" ".repeat(bodyBytesMax)}}`)],
];

const notFound = { code: "NOT_FOUND", beforeProtocol: true } as const;
const notMethod = { code: "METHOD_NOT_ALLOWED", beforeProtocol: true } as const;
const notMedia = { code: "UNSUPPORTED_MEDIA_TYPE", beforeProtocol: true } as const;
const tooLarge = { code: "PAYLOAD_TOO_LARGE" } as const;
const chunked = { "transfer-encoding": "chunked" };
const over1 = rpcProtocols.filter(({ http }) => http === 1);

export const http: BadRequest[] = [
  ...nowhere.map((path) =>
    bad(`POST to ${path.slice(0, 50)}`, "createKey", { on: gatewayProtocols, path, ...notFound }),
  ),
  ...notAllowed.flatMap((method) => [
    bad(`${method} on the gateway`, "createKey", { on: gatewayProtocols, method, ...notMethod }),
    bad(`${method} of an RPC`, "verifyKey", { on: rpcProtocols, method, ...notMethod }),
  ]),
  ...["", "connect=v1&"].map((version) =>
    bad(`Connect's GET ${version}`, "verifyKey", {
      on: rpcProtocols.filter(({ name }) => name.startsWith("connect")),
      method: "GET",
      path: `/latchkey.v1.KeysService/VerifyKey?${version}encoding=json&message=%7B%22key%22%3A%22cnry%22%7D`,
      headers: { "content-type": undefined },
      body: () => Buffer.alloc(0),
      code: "METHOD_NOT_ALLOWED",
    }),
  ),
  ...notJson.map((type) =>
    bad(`content-type ${type}`, "createKey", { on: gatewayProtocols, headers: { "content-type": type }, ...notMedia }),
  ),
  ...notRpc.map((type) =>
    bad(`content-type ${type} for an RPC`, "verifyKey", {
      on: rpcProtocols,
      headers: { "content-type": type },
      ...notMedia,
    }),
  ),
  ...["application/grpc", "application/grpc+proto", "application/grpc+json"].map((type) =>
    bad(`${type} over HTTP/1.1`, "verifyKey", { on: over1, headers: { "content-type": type }, beforeProtocol: true }),
  ),
  ...compressed.map(([encoding, body]) =>
    bad(`content-encoding ${encoding}`, "verifyKey", {
      on: gatewayProtocols,
      headers: { "content-encoding": encoding },
      body: () => body,
      ...notMedia,
      rpc: Code.Unimplemented,
    }),
  ),
  ...large.flatMap(([name, body]) => [
    bad(name, "verifyKey", { body, ...tooLarge }),
    bad(`${name}, in chunks`, "createKey", { body, headers: chunked, ...tooLarge }),
  ]),
];
