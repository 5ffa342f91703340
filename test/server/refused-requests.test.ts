import { once } from "node:events";
import net from "node:net";
import { describe, expect, it } from "vitest";
import { connectWire, type HttpAnswer, type HttpRequest } from "../rpc/exchange.ts";
import { frame } from "../rpc/protocols.ts";
import { startTestServer } from "../support/in-process-server.ts";
import { readMetric } from "../support/read-metric.ts";

const json = { "content-type": "application/json" };
const body = Buffer.from('{"key":"not a key"}');
const verification: HttpRequest = { method: "POST", path: "/v1/keys.verifyKey", headers: json, body };

/** Requests that never become a call, by the code that they are counted under. */
const refused: readonly (readonly [code: string, status: number, request: HttpRequest])[] = [
  ["NOT_FOUND", 404, { ...verification, path: "/v1/keys.verify" }],
  ["NOT_FOUND", 404, { ...verification, path: "/nowhere", method: "GET", body: Buffer.alloc(0) }],
  ["METHOD_NOT_ALLOWED", 405, { ...verification, method: "PUT" }],
  ["METHOD_NOT_ALLOWED", 405, { ...verification, path: "/latchkey.v1.KeysService/VerifyKey", method: "PUT" }],
  ["PAYLOAD_TOO_LARGE", 413, { ...verification, body: Buffer.alloc(65_537, " ") }],
  ["UNSUPPORTED_MEDIA_TYPE", 415, { ...verification, headers: { "content-type": "text/plain" } }],
  ["UNSUPPORTED_MEDIA_TYPE", 415, { ...verification, headers: { ...json, "content-encoding": "gzip" } }],
  [
    "UNSUPPORTED_MEDIA_TYPE",
    415,
    { ...verification, path: "/latchkey.v1.KeysService/VerifyKey", headers: { "content-type": "text/plain" } },
  ],
];

async function start(fastPath: boolean) {
  const { port, internalPort } = await startTestServer({ settings: { fastPath } });
  const counted = (code: string) => readMetric(internalPort, `latchkey_requests_refused_total{code="${code}"}`);
  const all = () => readMetric(internalPort, "latchkey_requests_refused_total");
  const calls = (labels = "") => readMetric(internalPort, `latchkey_call_seconds_count${labels}`);
  return { port, wire: connectWire(port), counted, all, calls };
}

describe.each([true, false])("with the fast path %s", (fastPath) => {
  it.each(["over1", "over2"] as const)("a request that becomes no call is counted once, %s", async (over) => {
    const { wire, counted, all, calls } = await start(fastPath);
    for (const [code, status, request] of refused) {
      const before = await counted(code);
      expect((await wire[over](request)).status, code).toBe(status);
      expect(await counted(code), `${request.method} ${request.path}`).toBe(before + 1);
    }
    expect(await all()).toBe(refused.length);
    expect(await calls()).toBe(0);
  });

  it.each(["over1", "over2"] as const)("a call is not counted as refused, whatever its answer is, %s", async (over) => {
    const { wire, all, calls } = await start(fastPath);
    const statuses = [
      await wire[over](verification),
      await wire[over]({ ...verification, body: Buffer.from("{}") }),
      await wire[over]({ ...verification, path: "/v1/keys.deleteKey", body: Buffer.from('{"keyId":"key_1"}') }),
      await wire[over]({ ...verification, path: "/v1/keys.getKey?keyId=key_1", method: "GET", body }),
      await wire[over]({ ...verification, path: "/livez", method: "GET", body: Buffer.alloc(0) }),
    ].map(({ status }) => status);
    expect(statuses).toEqual([200, 400, 401, 401, 200]);
    expect(await calls()).toBe(4);
    expect(await all()).toBe(0);
  });

  it("an unknown gRPC method is counted, and a gRPC body that is too large is a call's", async () => {
    const { wire, counted, all, calls } = await start(fastPath);
    const grpc = { "content-type": "application/grpc", te: "trailers" };
    const unknown = { ...verification, path: "/latchkey.v1.KeysService/Verify", headers: grpc, body: frame(body) };
    expect(grpcStatusOf(await wire.over2(unknown))).toBe("12");
    expect(await counted("NOT_FOUND")).toBe(1);

    const tooLarge = { ...unknown, path: "/latchkey.v1.KeysService/VerifyKey", body: frame(Buffer.alloc(70_000)) };
    expect(grpcStatusOf(await wire.over2(tooLarge))).toBe("8");
    expect(await calls('{method="KeysService/VerifyKey",protocol="grpc",code="PAYLOAD_TOO_LARGE"}')).toBe(1);

    const watch = { ...tooLarge, path: "/grpc.health.v1.Health/Watch" };
    expect(grpcStatusOf(await wire.over2(watch))).toBe("8");
    expect(await counted("PAYLOAD_TOO_LARGE")).toBe(1);
    expect(await all()).toBe(2);
  });

  it("bytes that are no request are counted once, when they are answered", async () => {
    const { port, counted, all } = await start(fastPath);
    const socket = net.connect(port, "127.0.0.1");
    await once(socket, "connect");
    socket.end("POST / HTTP/1.1\r\nhost: a\r\nnot a header\r\n\r\nGET / HTTP/1.1\r\n\r\n");
    const [answer] = (await once(socket, "data")) as [Buffer];
    expect(String(answer)).toMatch(/^HTTP\/1\.1 400 /);
    expect([await counted("BAD_REQUEST"), await all()]).toEqual([1, 1]);
  });
});

function grpcStatusOf({ headers, trailers }: HttpAnswer): string | null {
  return trailers.get("grpc-status") ?? headers.get("grpc-status");
}
