import type { JsonObject } from "@bufbuild/protobuf";
import { describe, expect, it, onTestFinished } from "vitest";
import type { ForwardedCall } from "../../src/domain/forwarded-call.ts";
import { unlimitedRootKey } from "../../src/domain/root-key.ts";
import { Unavailable } from "../../src/domain/unavailable.ts";
import type { CarryOut } from "../../src/rpc/forwarded-calls.ts";
import type { CheckRootKey } from "../../src/store/root-access.ts";
import { composePublicApi } from "../support/compose-public-api.ts";
import { coreElsewhere } from "../support/core-elsewhere.ts";
import { sumMetric } from "../support/read-metric.ts";
import { checkTestRootKey, testRootKey } from "../support/test-root-key.ts";
import { frame } from "./protocols.ts";

/** A front whose core is elsewhere, and what it has forwarded. */
async function start({ atCore = checkTestRootKey, carryOut }: { atCore?: CheckRootKey; carryOut?: CarryOut } = {}) {
  const forwarded: ForwardedCall[] = [];
  const api = composePublicApi(
    (parts) => {
      const { management } = parts.store;
      const core = coreElsewhere({ ...parts, checkRootKey: atCore, management }).manages.carryOut;
      const noted: CarryOut = (call, isRead) => {
        forwarded.push(call);
        return (carryOut ?? core)(call, isRead);
      };
      return { manages: { carryOut: noted } };
    },
    { logLevel: "info" },
  );
  const port = await api.onePort.listen(0, "127.0.0.1");
  onTestFinished(() => api.onePort.close(0));
  const post = async (path: string, body: string, headers: object = {}) => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${testRootKey}`, ...headers },
      body,
    });
    return { status: response.status, headers: response.headers, ...((await response.json()) as JsonObject) };
  };
  const lines = () => api.logLines.map((line) => JSON.parse(line) as Record<string, unknown>);
  return { ...api, port, post, forwarded, lines };
}

describe("a front without a core", () => {
  it("forwards a call as it came, and answers what the core answers", async () => {
    const { post, forwarded } = await start();
    const body = '{ "apiId" : "é", "name": "n" }';
    const created = await post("/v1/apis.createApi", body, { "idempotency-key": "order-1" });
    expect(created).toMatchObject({ status: 200, apiId: "é", name: "n" });
    expect(forwarded).toEqual([
      {
        method: "ApisService/CreateApi",
        message: { encoding: "json", bytes: new Uint8Array(Buffer.from(body)) },
        rootKey: testRootKey,
        idempotencyKey: "order-1",
        requestId: created.headers.get("x-request-id"),
        protocol: "json",
        address: "127.0.0.1",
        timeLeftMs: undefined,
      },
    ]);
  });

  it("forwards nothing of a stranger", async () => {
    const { post, forwarded } = await start();
    for (const authorization of ["", "Bearer another-root-key", "Basic x"]) {
      expect(await post("/v1/keys.createKey", "{", { authorization })).toMatchObject({ status: 401 });
    }
    expect(forwarded).toEqual([]);
  });

  it("learns from the core that a root key is not valid any more, and that it may not do this", async () => {
    const revoked = await start({ atCore: () => undefined });
    expect(await revoked.post("/v1/apis.listApis", "{}")).toMatchObject({ status: 401 });
    const limited = await start({ atCore: () => ({ ...unlimitedRootKey("root_1"), permissions: ["keys.read"] }) });
    // 403 before 400.
    expect(await limited.post("/v1/apis.listApis", "{")).toMatchObject({
      status: 403,
      error: { message: "the root key lacks the permission apis.read" },
    });
  });

  it("counts a call once and logs its error, while the core logs the call with its actor", async () => {
    const { post, metrics, lines } = await start();
    const { headers } = await post("/v1/keys.getKey", '{"keyId":"key_none"}');
    const requestId = headers.get("x-request-id");
    expect(sumMetric(await metrics.render(), "latchkey_call_seconds_count")).toBe(1);
    const about = lines().filter((line) => line.requestId === requestId);
    expect(about).toMatchObject([
      { msg: "call", actor: "root_test", code: "NOT_FOUND", method: "KeysService/GetKey" },
      { msg: "an error was answered", code: "NOT_FOUND", method: "KeysService/GetKey" },
    ]);
  });

  it("logs a call itself that does not reach the core", async () => {
    const lost = await start({ carryOut: () => Promise.reject(new Unavailable("lost")) });
    await lost.post("/v1/apis.listApis", "{}");
    expect(lost.lines()).toMatchObject([
      { msg: "a call could not be decided" },
      { msg: "call", actor: "root_test", code: "SERVICE_UNAVAILABLE" },
    ]);
  });

  it.each([
    ["application/json", "connect-timeout-ms", "1500", 1500],
    ["application/grpc-web+json", "grpc-timeout", "2S", 2000],
    ["application/grpc-web+json", "grpc-timeout", "300m", 300],
    ["application/grpc-web+json", "grpc-timeout", "5000u", 5],
  ])("tells the core how long its caller waits: %s, %s %s", async (type, name, value, timeLeftMs) => {
    const { port, forwarded } = await start();
    await fetch(`http://127.0.0.1:${port}/latchkey.v1.ApisService/ListApis`, {
      method: "POST",
      headers: { "content-type": type, authorization: `Bearer ${testRootKey}`, [name]: value },
      body: type === "application/json" ? "{}" : frame(Buffer.from("{}")),
    });
    expect(forwarded[0]?.timeLeftMs).toBe(timeLeftMs);
  });

  it("answers 503 if the core cannot be reached", async () => {
    const { post } = await start({ carryOut: () => Promise.reject(new Unavailable("lost")) });
    expect(await post("/v1/apis.createApi", '{"apiId":"a"}')).toMatchObject({ status: 503 });
  });
});
