import { Code, ConnectError, createClient, type Interceptor } from "@connectrpc/connect";
import { createConnectTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { expect, it } from "vitest";
import { Health } from "../../gen/health/v1/health_pb.js";
import { ErrorDetailSchema } from "../../gen/latchkey/v1/errors_pb.js";
import { KeysService } from "../../gen/latchkey/v1/keys_pb.js";
import { readMetric } from "../support/read-metric.ts";
import { shareServer } from "./shared-server.ts";

/* What is not served of a protocol, as its clients see it. */

const server = shareServer();

it.each(["1.1", "2"] as const)("Connect's GET is unimplemented, over HTTP/%s", async (httpVersion) => {
  const { baseUrl, internalPort } = server();
  const refused = () => readMetric(internalPort, 'latchkey_requests_refused_total{code="METHOD_NOT_ALLOWED"}');
  const before = await refused();
  const { getKey } = createClient(KeysService, createConnectTransport({ baseUrl, httpVersion, useHttpGet: true }));
  const error = await errorOf(getKey({ keyId: "key_1" }));
  expect(error.code).toBe(Code.Unimplemented);
  expect(error.rawMessage).toContain("POST");
  expect(error.findDetails(ErrorDetailSchema)).toMatchObject([{ code: "METHOD_NOT_ALLOWED" }]);
  expect(await refused()).toBe(before + 1);
});

it("Connect's GET is answered with 501 and Connect's JSON", async () => {
  const path = "/latchkey.v1.KeysService/VerifyKey?encoding=json&message=%7B%22key%22%3A%22x%22%7D";
  const answer = await fetch(`${server().baseUrl}${path}`);
  expect([answer.status, answer.headers.get("content-type")]).toEqual([501, "application/json"]);
  expect(await answer.json()).toMatchObject({ code: "unimplemented", message: expect.stringContaining("POST") });
});

it.each(["application/grpc-web-text", "application/grpc-web-text+proto"])(
  "%s is unimplemented, in headers without a body",
  async (type) => {
    const { baseUrl, internalPort } = server();
    const refused = () => readMetric(internalPort, 'latchkey_requests_refused_total{code="UNSUPPORTED_MEDIA_TYPE"}');
    const before = await refused();
    const asText: Interceptor = (next) => (request) => {
      request.header.set("content-type", type);
      return next(request);
    };
    const transport = createGrpcWebTransport({ baseUrl, httpVersion: "2", interceptors: [asText] });
    const unary = await errorOf(createClient(KeysService, transport).verifyKey({ key: "x" }));
    const stream = await errorOf(createClient(Health, transport).watch({})[Symbol.asyncIterator]().next());
    for (const error of [unary, stream]) {
      expect(error.code).toBe(Code.Unimplemented);
      expect(error.rawMessage).toContain("application/grpc-web");
      expect(error.findDetails(ErrorDetailSchema)).toMatchObject([{ code: "UNSUPPORTED_MEDIA_TYPE" }]);
    }
    expect(await refused()).toBe(before + 2);

    const headers = { "content-type": type };
    const answer = await fetch(`${baseUrl}/latchkey.v1.KeysService/VerifyKey`, { method: "POST", headers, body: "" });
    expect([answer.status, answer.headers.get("content-type"), answer.headers.get("grpc-status")]).toEqual([
      200,
      type,
      "12",
    ]);
    expect(await answer.text()).toBe("");
  },
);

async function errorOf(call: Promise<unknown>): Promise<ConnectError> {
  return call.then(() => expect.fail("is served"), ConnectError.from);
}
