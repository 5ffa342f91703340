import { describe, expect, it, vi } from "vitest";
import { hotMethods } from "../../../gen/latchkey/v1/keys_hot.ts";
import { decodeBinary } from "../../../src/rpc/decoding/decode-binary.ts";
import { decodeJson } from "../../../src/rpc/decoding/decode-json.ts";
import { text } from "../decoding/build-wire.ts";
import { frame } from "../protocols.ts";
import { connectRaw, type RawRequest } from "./raw-exchange.ts";
import { startTwins } from "./twin-servers.ts";

vi.mock("../../../src/rpc/decoding/decode-json.ts", { spy: true });
vi.mock("../../../src/rpc/decoding/decode-binary.ts", { spy: true });

const json = { "content-type": "application/json" };
const grpc = { "content-type": "application/grpc", te: "trailers" };
const path = "/v1/keys.verifyKey";
/** A body that only the strict decoder reads. */
const escaped = (key: string) => Buffer.from(`{"key":"${key}","apiId":"\\u0061pi_1"}`);
const plain = (key: string) => Buffer.from(`{"key":"${key}","apiId":"api_1"}`);
const bad = () => Buffer.from('{"kex":1}');
const longTag = (key: string) => frame(Buffer.concat([Buffer.of(0x8a, 0x00), text(1, key).subarray(1)]));

describe("the codec reads a body once, and only what it leaves is read once more by the strict decoder", () => {
  it.each<[string, (key: string) => Omit<RawRequest, "name">, number]>([
    ["by hand", (key) => over1(plain(key)), 0],
    ["by hand, with an escape", (key) => over1(escaped(key)), 1],
    ["by hand, bad", () => over1(bad()), 1],
    ["on node:http", (key) => ({ ...over1(plain(key)), headers: chunked }), 0],
    ["on node:http, with an escape", (key) => ({ ...over1(escaped(key)), headers: chunked }), 1],
    ["on node:http, bad", () => ({ ...over1(bad()), headers: chunked }), 1],
    ["JSON on HTTP/2", (key) => ({ over: "HTTP/2", path, headers: json, chunks: [plain(key)] }), 0],
    ["JSON on HTTP/2, with an escape", (key) => ({ over: "HTTP/2", path, headers: json, chunks: [escaped(key)] }), 1],
    ["gRPC", (key) => ({ over: "HTTP/2", headers: grpc, chunks: [Buffer.from(frame(text(1, key)))] }), 0],
    ["gRPC, in another spelling", (key) => ({ over: "HTTP/2", headers: grpc, chunks: [Buffer.from(longTag(key))] }), 1],
  ])("%s", async (name, make, strictly) => {
    const [codec] = hotMethods as [(typeof hotMethods)[number]];
    const { ports, secrets } = await startTwins();
    const byCodec = [vi.spyOn(codec, "decodeJson"), vi.spyOn(codec, "decodeBinary")];
    const byDecoder = [vi.mocked(decodeJson), vi.mocked(decodeBinary)];
    for (const spy of [...byCodec, ...byDecoder]) spy.mockClear();
    const heard = await connectRaw({ port: ports[1] }).send({ name, ...make(secrets.plain as string) });
    expect(JSON.stringify(heard)).toContain(name.endsWith("bad") ? "BAD_REQUEST" : "key_of_plain");
    const calls = (spies: typeof byCodec | typeof byDecoder) =>
      spies.reduce((sum, { mock }) => sum + mock.calls.length, 0);
    expect([calls(byCodec), calls(byDecoder)]).toEqual([1, strictly]);
  });
});

const chunked = { ...json, "transfer-encoding": "chunked" };

function over1(body: Buffer): Omit<RawRequest, "name"> {
  return { over: "HTTP/1.1", path, headers: { ...json, "content-length": `${body.length}` }, chunks: [body] };
}
