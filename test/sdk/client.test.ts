import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { inspect } from "node:util";
import { describe, expect, it, onTestFinished } from "vitest";
import { type ClientOptions, createClient, LatchkeyError } from "../../src/sdk/index.ts";

const rootKey = "root-0123456789abcdef0123456789abcdef";
const key = "live_4f7Qx2secretsecretsecret";
const answer = { valid: true, code: "VALID", keyId: "key_1", meta: {}, remaining: 0, requestId: "req_1" };

describe("a call", () => {
  it("posts JSON to the method's path and returns the answer", async () => {
    const { baseUrl, requests } = await serve(sendJson(200, answer));
    expect(await createClient({ baseUrl, rootKey }).keys.verifyKey({ key, apiId: "api_1" })).toEqual(answer);
    expect(requests).toMatchObject([{ method: "POST", path: "/v1/keys.verifyKey", body: { key, apiId: "api_1" } }]);
    expect(requests[0]?.headers).toMatchObject({ "content-type": "application/json" });
  });

  it("sends the root key to every method: a service may ask for it in verifications, too", async () => {
    const { baseUrl, requests } = await serve(sendJson(200, answer));
    const client = createClient({ baseUrl, rootKey }).keys;
    await client.createKey({ apiId: "api_1" }, { idempotencyKey: "order-1" });
    await client.deleteKey({ keyId: "key_1" });
    await client.verifyKey({ key });
    const bearer = `Bearer ${rootKey}`;
    expect(requests.map((request) => request.headers.authorization)).toEqual([bearer, bearer, bearer]);
    expect(requests.map((request) => request.headers["idempotency-key"])).toEqual(["order-1", undefined, undefined]);
  });

  it("sends no idempotency key that the service would ignore", async () => {
    const { baseUrl, requests } = await serve(sendJson(200, answer));
    const options = { idempotencyKey: "order-1" } as object;
    const call = createClient({ baseUrl, rootKey }).keys.getKey({ keyId: "key_1" }, options);
    await expect(call).rejects.toThrow(new TypeError("this method takes no idempotencyKey"));
    expect(requests).toEqual([]);
  });

  it("without a root key verifies, and fails for other methods before any request is made", async () => {
    const { baseUrl, requests } = await serve(sendJson(200, answer));
    expect(await createClient({ baseUrl }).keys.verifyKey({ key })).toEqual(answer);
    expect(requests.splice(0).map((request) => request.headers.authorization)).toEqual([undefined]);
    const error = await failureOf(createClient({ baseUrl }).keys.createKey({ apiId: "api_1" }));
    expect(error).toMatchObject({ code: "UNAUTHORIZED", status: undefined });
    expect(requests).toEqual([]);
  });

  it("keeps the path of the base URL", async () => {
    const { baseUrl, requests } = await serve(sendJson(200, answer));
    await createClient({ baseUrl: new URL(`${baseUrl}/keys/`) }).keys.verifyKey({ key });
    expect(requests[0]?.path).toBe("/keys/v1/keys.verifyKey");
  });

  it("uses the fetch it is given", async () => {
    const client = createClient({ baseUrl: "http://unused.invalid", fetch: async () => Response.json(answer) }).keys;
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
    const call = createClient({ baseUrl, rootKey }).keys.createKey(request as { apiId: string });
    await expect(call).rejects.toThrow(new TypeError(`${field} must not hold NaN or Infinity: JSON cannot carry them`));
    expect(requests).toEqual([]);
  });

  it("is refused in every method, and what JSON can carry is sent as it is", async () => {
    const { baseUrl, requests } = await serve(sendJson(200, answer));
    const client = createClient({ baseUrl, rootKey }).keys;
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
    const failure = await failureOf(createClient({ baseUrl }).keys.verifyKey({ key }));
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
    const failure = await failureOf(createClient({ baseUrl }).keys.verifyKey({ key }));
    expect(failure).toMatchObject({ code: "BAD_RESPONSE", status });
    expect(requests).toHaveLength(1);
  });

  it.each<[string, RequestListener]>([
    ["answers nothing", () => {}],
    ["stops in the middle of its answer", (_, response) => response.writeHead(200).write('{"valid":')],
  ])("is TIMEOUT when the service %s", async (_, listener) => {
    const { baseUrl } = await serve(listener);
    const failure = await failureOf(createClient({ baseUrl, timeoutMs: 30 }).keys.verifyKey({ key }));
    expect(failure).toMatchObject({ code: "TIMEOUT", status: undefined });
  });

  it("is TIMEOUT after the call's own time, where it has one", async () => {
    const { baseUrl } = await serve(() => {});
    const call = createClient({ baseUrl }).keys.verifyKey(
      { key },
      { timeoutMs: 30, signal: new AbortController().signal },
    );
    expect(await failureOf(call)).toMatchObject({ code: "TIMEOUT", message: expect.stringContaining("30 ms") });
  });

  it("is NETWORK_ERROR, with its cause, when no server listens", async () => {
    const { baseUrl, close } = await serve(() => {});
    await close();
    const failure = await failureOf(createClient({ baseUrl }).keys.verifyKey({ key }));
    expect(failure).toMatchObject({ code: "NETWORK_ERROR", status: undefined });
    expect(inspect(failure.cause)).toContain("ECONNREFUSED");
  });

  it("is NETWORK_ERROR when the connection breaks, and the verification is not repeated", async () => {
    const { baseUrl, requests } = await serve((request) => request.socket.destroy());
    const failure = await failureOf(createClient({ baseUrl }).keys.verifyKey({ key }));
    expect(failure.code).toBe("NETWORK_ERROR");
    expect(requests).toHaveLength(1);
  });
});

describe("the caller's signal", () => {
  it("ends a call under way with its own reason", async () => {
    const controller = new AbortController();
    const reason = new Error("the user went away");
    const { baseUrl } = await serve(() => controller.abort(reason));
    const call = createClient({ baseUrl }).keys.verifyKey({ key }, { signal: controller.signal });
    await expect(call).rejects.toBe(reason);
  });

  it("is an AbortError where it names no reason, and no request is made after it", async () => {
    const { baseUrl, requests } = await serve(sendJson(200, answer));
    const call = createClient({ baseUrl }).keys.verifyKey({ key }, { signal: AbortSignal.abort() });
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
    const failure = await failureOf(createClient({ baseUrl, rootKey }).keys.createKey({ apiId: "api_1", name: key }));
    expect(printed(failure)).not.toContain(rootKey);
    expect(printed(failure)).not.toContain(key);
  });

  it("stay out of the error when they cannot be sent", async () => {
    const options = { baseUrl: "http://unused.invalid", rootKey: `${rootKey}\n` };
    expect(() => createClient(options)).toThrow("rootKey must be");
    const client = createClient({ ...options, rootKey }).keys;
    const error = await client.createKey({ apiId: "api_1" }, { idempotencyKey: `${key}\n` }).catch((e: unknown) => e);
    expect(error).toBeInstanceOf(TypeError);
    expect(printed(error)).not.toContain(key);
  });

  it("stay out of a printed client", () => {
    expect(printed(createClient({ baseUrl: "http://unused.invalid", rootKey }))).not.toContain(rootKey);
  });
});

it.each<[string, Partial<ClientOptions>]>([
  ["a base URL that is none", { baseUrl: "keys.example.com" }],
  ["a base URL of another protocol", { baseUrl: "ftp://keys.example.com" }],
  ["credentials in the base URL", { baseUrl: "http://user:password@keys.example.com" }],
  ["a query in the base URL", { baseUrl: "http://keys.example.com/?a=b" }],
  ["an empty root key", { rootKey: "" }],
  ["no time", { timeoutMs: 0 }],
  ["a time that timers take for none", { timeoutMs: Number.POSITIVE_INFINITY }],
])("createClient refuses %s", (_, options) => {
  expect(() => createClient({ baseUrl: "http://keys.example.com", ...options })).toThrow(/must be/);
});

it("the SDK imports its own files and its generated types, and nothing of Node", () => {
  const folder = join(import.meta.dirname, "../../src/sdk");
  const sources = readdirSync(folder).map((name) => readFileSync(join(folder, name), "utf8"));
  sources.push(readFileSync(join(folder, "../../gen/latchkey/v1/client.ts"), "utf8"));
  const imports = new Set(sources.flatMap(importsOf));
  expect([...imports].sort()).toEqual(["../../gen/latchkey/v1/client.ts", "./client.ts", "./errors.ts"]);
  expect(sources.join()).not.toMatch(/node:|\b(process|Buffer|require)\b/);
  expect(importsOf('import { x } from "node:fs";\nimport "y";\nawait import("z")')).toEqual(["node:fs", "y", "z"]);
});

interface SeenRequest {
  readonly method: string | undefined;
  readonly path: string | undefined;
  readonly headers: IncomingMessage["headers"];
  readonly body: unknown;
}

/** A test server that records the requests. */
async function serve(listener: RequestListener) {
  const requests: SeenRequest[] = [];
  const server = createServer(async (request, response) => {
    const { method, url: path, headers } = request;
    requests.push({ method, path, headers, body: JSON.parse(await text(request)) });
    listener(request, response);
  });
  const close = async () => {
    server.closeAllConnections();
    if (server.listening) await once(server.close(), "close");
  };
  onTestFinished(close);
  await once(server.listen(0, "127.0.0.1"), "listening");
  return { baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests, close };
}

function sendJson(status: number, body: unknown, headers = {}): RequestListener {
  return sendText(status, JSON.stringify(body), { "content-type": "application/json", ...headers });
}

function sendText(status: number, body: string, headers = {}): RequestListener {
  return (_, response) => response.writeHead(status, headers).end(body);
}

function echo(request: IncomingMessage, response: ServerResponse, status: number) {
  response.writeHead(status).end(JSON.stringify([request.headers, key]));
}

async function failureOf(call: Promise<unknown>): Promise<LatchkeyError> {
  const error = await call.then(
    () => new Error("the call succeeded"),
    (reason: unknown) => reason,
  );
  if (!(error instanceof LatchkeyError)) throw error;
  return error;
}

function printed(value: unknown): string {
  return inspect(value, { depth: null, showHidden: true });
}

function importsOf(source: string): string[] {
  return [...source.matchAll(/\b(?:from|import)[\s(]*"([^"]+)"/g)].map((match) => match[1] ?? "");
}
