import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import { inspect } from "node:util";
import { describe, expect, it } from "vitest";
import { rawClient } from "../support/raw-client.ts";
import { failureOf, printed, sendJson, sendText, serve } from "./recording-server.ts";

const rootKey = "root-0123456789abcdef0123456789abcdef";
const key = "live_4f7Qx2secretsecretsecret";
const answer = { valid: true, code: "VALID", keyId: "key_1", meta: {}, remaining: 0, requestId: "req_1" };

describe("a call", () => {
  it("posts JSON to the method's path and returns the answer", async () => {
    const { baseUrl, requests } = await serve(sendJson(200, answer));
    expect(await rawClient({ baseUrl, rootKey }).keys.verifyKey({ key, apiId: "api_1" })).toEqual(answer);
    expect(requests).toMatchObject([{ method: "POST", path: "/v1/keys.verifyKey", body: { key, apiId: "api_1" } }]);
    expect(requests[0]?.headers).toMatchObject({ "content-type": "application/json" });
  });

  it("sends the root key to every method: a service may ask for it in verifications, too", async () => {
    const { baseUrl, requests } = await serve(sendJson(200, answer));
    const client = rawClient({ baseUrl, rootKey }).keys;
    await client.createKey({ apiId: "api_1" }, { idempotencyKey: "order-1" });
    await client.deleteKey({ keyId: "key_1" });
    await client.verifyKey({ key });
    const bearer = `Bearer ${rootKey}`;
    expect(requests.map((request) => request.headers.authorization)).toEqual([bearer, bearer, bearer]);
    expect(requests.map((request) => request.headers["idempotency-key"])).toEqual(["order-1", undefined, undefined]);
  });

  it("without a root key verifies, and fails for other methods before any request is made", async () => {
    const { baseUrl, requests } = await serve(sendJson(200, answer));
    expect(await rawClient({ baseUrl }).keys.verifyKey({ key })).toEqual(answer);
    expect(requests.splice(0).map((request) => request.headers.authorization)).toEqual([undefined]);
    const error = await failureOf(rawClient({ baseUrl }).keys.createKey({ apiId: "api_1" }));
    expect(error).toMatchObject({ code: "UNAUTHORIZED", status: undefined });
    expect(requests).toEqual([]);
  });

  it("keeps the path of the base URL", async () => {
    const { baseUrl, requests } = await serve(sendJson(200, answer));
    await rawClient({ baseUrl: new URL(`${baseUrl}/keys/`) }).keys.verifyKey({ key });
    expect(requests[0]?.path).toBe("/keys/v1/keys.verifyKey");
  });

  it("uses the fetch it is given", async () => {
    const client = rawClient({ baseUrl: "http://unused.invalid", fetch: async () => Response.json(answer) }).keys;
    expect(await client.verifyKey({ key })).toEqual(answer);
  });
});

describe("a number that JSON cannot carry", () => {
  const secret = "acme_2AsTXY7ZPJon57xXlwg1iFScToYBEIkW74QinwK";
  const limit = { limit: Number.NEGATIVE_INFINITY, duration: 1000 };
  it.each<[string, object, string]>([
    ["a field", { apiId: "a", remaining: Number.NaN }, "remaining"],
    ["a field of an object", { apiId: "a", ratelimit: limit }, "ratelimit.limit"],
    ["a field that is no number", { apiId: Number.POSITIVE_INFINITY }, "apiId"],
    ["meta", { apiId: "a", meta: { a: { [secret]: [1, Number.NaN] } } }, "meta"],
    ["an unknown field", { [secret]: Number.NaN }, "the request"],
    ["a known name in an unknown field", { [secret]: { remaining: Number.NaN } }, "the request"],
    ["what toJSON answers", { apiId: "a", meta: { toJSON: () => ({ [secret]: Number.NaN }) } }, "meta"],
  ])("in %s is refused before any request is made, and nothing sent is repeated", async (_, request, field) => {
    const { baseUrl, requests } = await serve(sendJson(200, answer));
    const call = rawClient({ baseUrl, rootKey }).keys.createKey(request as { apiId: string });
    await expect(call).rejects.toThrow(new TypeError(`${field} must not hold NaN or Infinity: JSON cannot carry them`));
    expect(requests).toEqual([]);
  });

  it("is refused in every method, and what JSON can carry is sent as it is", async () => {
    const { baseUrl, requests } = await serve(sendJson(200, answer));
    const client = rawClient({ baseUrl, rootKey }).keys;
    await expect(client.verifyKey({ key, apiId: Number.NaN as never })).rejects.toThrow("apiId must not hold NaN");
    await expect(client.deleteKey({ keyId: Number.NaN as never })).rejects.toThrow("keyId must not hold NaN");
    const meta = { none: null, numbers: [0, -0.5, 1e300, Number.MAX_SAFE_INTEGER], inner: { remaining: 1 } };
    await client.createKey({ apiId: "api_1", remaining: 0, meta });
    expect(requests.map(({ body }) => body)).toEqual([{ apiId: "api_1", remaining: 0, meta }]);
  });
});

describe("a failure", () => {
  it("of the service carries what the service said", async () => {
    const error = {
      code: "SERVICE_UNAVAILABLE",
      message: "try later",
      docs: "https://docs.test/e",
      requestId: "req_9",
    };
    const { baseUrl } = await serve(sendJson(503, { error }, { "retry-after": "2" }));
    const failure = await failureOf(rawClient({ baseUrl }).keys.verifyKey({ key }));
    expect(failure).toMatchObject({ name: "LatchkeyError", ...error, status: 503, retryAfterMs: 2000 });
  });

  it.each<[string, RequestListener, number]>([
    ["HTML of a proxy", sendText(502, "<html>Bad Gateway</html>"), 502],
    ["JSON that is not an error of ours", sendJson(500, { error: "oops" }), 500],
    ["success that is not JSON", sendText(200, "<html>Log in to the Wi-Fi</html>"), 200],
    ["success that is not an object", sendJson(200, [answer]), 200],
    ["redirect, which is not followed", sendText(307, "", { location: "/elsewhere" }), 307],
  ])("is BAD_RESPONSE for %s", async (_, listener, status) => {
    const { baseUrl, requests } = await serve(listener);
    const failure = await failureOf(rawClient({ baseUrl }).keys.verifyKey({ key }));
    expect(failure).toMatchObject({ code: "BAD_RESPONSE", status });
    expect(requests).toHaveLength(1);
  });

  it.each<[string, RequestListener]>([
    ["answers nothing", () => {}],
    ["stops in the middle of its answer", (_, response) => response.writeHead(200).write('{"valid":')],
  ])("is TIMEOUT when the service %s", async (_, listener) => {
    const { baseUrl } = await serve(listener);
    const failure = await failureOf(rawClient({ baseUrl, timeoutMs: 30 }).keys.verifyKey({ key }));
    expect(failure).toMatchObject({ code: "TIMEOUT", status: undefined });
  });

  it("is TIMEOUT after the call's own time, where it has one", async () => {
    const { baseUrl } = await serve(() => {});
    const call = rawClient({ baseUrl }).keys.verifyKey(
      { key },
      { timeoutMs: 30, signal: new AbortController().signal },
    );
    expect(await failureOf(call)).toMatchObject({ code: "TIMEOUT", message: expect.stringContaining("30 ms") });
  });

  it("is NETWORK_ERROR, with its cause, when no server listens", async () => {
    const { baseUrl, close } = await serve(() => {});
    await close();
    const failure = await failureOf(rawClient({ baseUrl }).keys.verifyKey({ key }));
    expect(failure).toMatchObject({ code: "NETWORK_ERROR", status: undefined });
    expect(inspect(failure.cause)).toContain("ECONNREFUSED");
  });

  it("is NETWORK_ERROR when the connection breaks, and the verification is not repeated", async () => {
    const { baseUrl, requests } = await serve((request) => request.socket.destroy());
    const failure = await failureOf(rawClient({ baseUrl }).keys.verifyKey({ key }));
    expect(failure.code).toBe("NETWORK_ERROR");
    expect(requests).toHaveLength(1);
  });
});

describe("the caller's signal", () => {
  it("ends a call under way with its own reason", async () => {
    const controller = new AbortController();
    const reason = new Error("the user went away");
    const { baseUrl } = await serve(() => controller.abort(reason));
    const call = rawClient({ baseUrl }).keys.verifyKey({ key }, { signal: controller.signal });
    await expect(call).rejects.toBe(reason);
  });

  it("is an AbortError where it names no reason, and no request is made after it", async () => {
    const { baseUrl, requests } = await serve(sendJson(200, answer));
    const call = rawClient({ baseUrl }).keys.verifyKey({ key }, { signal: AbortSignal.abort() });
    await expect(call).rejects.toMatchObject({ name: "AbortError" });
    expect(requests).toEqual([]);
  });
});

describe("secrets", () => {
  it.each<[string, RequestListener]>([
    ["a proxy that repeats the request", (request, response) => void echo(request, response, 502)],
    ["a success that repeats the request", (request, response) => void echo(request, response, 200)],
    ["an answer cut off inside the new key", sendText(200, `{"key":"${key}`)],
    ["a broken connection", (request) => request.socket.destroy()],
  ])("stay out of the error after %s", async (_, listener) => {
    const { baseUrl } = await serve(listener);
    const failure = await failureOf(rawClient({ baseUrl, rootKey }).keys.createKey({ apiId: "api_1", name: key }));
    expect(printed(failure)).not.toContain(rootKey);
    expect(printed(failure)).not.toContain(key);
  });

  it("stay out of the error when they cannot be sent", async () => {
    const options = { baseUrl: "http://unused.invalid", rootKey: `${rootKey}\n` };
    expect(() => rawClient(options)).toThrow("rootKey must be");
    const client = rawClient({ ...options, rootKey }).keys;
    const error = await client.createKey({ apiId: "api_1" }, { idempotencyKey: `${key}\n` }).catch((e: unknown) => e);
    expect(error).toBeInstanceOf(TypeError);
    expect(printed(error)).not.toContain(key);
  });

  it("stay out of a printed client", () => {
    expect(printed(rawClient({ baseUrl: "http://unused.invalid", rootKey }))).not.toContain(rootKey);
  });
});

function echo(request: IncomingMessage, response: ServerResponse, status: number) {
  response.writeHead(status).end(JSON.stringify([request.headers, key]));
}
