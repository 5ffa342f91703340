import { readdirSync, readFileSync } from "node:fs";
import type { RequestListener } from "node:http";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type ClientOptions, createClient, isLatchkeyError, LatchkeyError } from "../../src/sdk/index.ts";
import { failureOf, printed, type SeenRequest, sendJson, sendText, serve } from "./recording-server.ts";

const rootKey = "root-0123456789abcdef0123456789abcdef";
const key = "live_4f7Qx2secretsecretsecret";
const answer = { valid: true, code: "VALID", keyId: "key_1", meta: {}, ratelimits: [], requestId: "req_1" };

function errorBody(code: string, more = {}) {
  return { error: { code, message: "in words", docs: "/docs", requestId: "req_9", ...more } };
}

/** Answers with each of them once, and with the last one from then on. */
function inTurn(...listeners: RequestListener[]): RequestListener {
  return (request, response) => (listeners.length > 1 ? listeners.shift() : listeners[0])?.(request, response);
}

const idempotencyKeys = (requests: readonly SeenRequest[]) => requests.map(({ headers }) => headers["idempotency-key"]);
const unavailable = sendJson(503, errorBody("SERVICE_UNAVAILABLE"));
const cutOff: RequestListener = (request) => request.socket.destroy();

describe("a verification in an outage", () => {
  const outages: [string, RequestListener, string][] = [
    ["answers 503", unavailable, "SERVICE_UNAVAILABLE"],
    ["answers 500", sendJson(500, errorBody("INTERNAL_SERVER_ERROR")), "INTERNAL_SERVER_ERROR"],
    ["is behind a proxy that answers 429", sendText(429, "slow down"), "BAD_RESPONSE"],
    ["is behind a proxy that fails", sendText(502, "<html>Bad Gateway</html>"), "BAD_RESPONSE"],
    ["is behind a portal", sendText(200, "<html>Log in</html>"), "BAD_RESPONSE"],
    ["is another one", sendJson(200, { ok: true }), "BAD_RESPONSE"],
    ["breaks the connection", cutOff, "NETWORK_ERROR"],
    ["answers nothing", () => {}, "TIMEOUT"],
  ];

  it.each(outages)("is refused and marked when the service %s, and sent once", async (_, listener, code) => {
    const { baseUrl, requests } = await serve(listener);
    const verified = await createClient({ baseUrl, timeoutMs: code === "TIMEOUT" ? 100 : 60_000 }).keys.verifyKey({
      key,
    });
    expect(verified).toEqual({
      valid: false,
      code: "UNAVAILABLE",
      degraded: true,
      meta: {},
      ratelimits: [],
      cause: expect.objectContaining({ code }),
    });
    expect(requests).toHaveLength(1);
  });

  it("is allowed where that was chosen, but not with permissions or an address: nobody has checked them", async () => {
    const { baseUrl } = await serve(unavailable);
    for (const onUnavailable of ["allow", () => true, async () => true] as const) {
      const { keys } = createClient({ baseUrl, onUnavailable });
      expect(await keys.verifyKey({ key })).toMatchObject({ valid: true, degraded: true });
      expect(await keys.verifyKey({ key, permissions: "docs.read" })).toMatchObject({ valid: false });
      expect(await keys.verifyKey({ key, ip: "192.0.2.1" })).toMatchObject({ valid: false });
    }
  });

  it("asks the function that was given, with the reason and the request", async () => {
    const { baseUrl } = await serve(unavailable);
    const asked: unknown[] = [];
    const onUnavailable = (cause: LatchkeyError, request: object) => asked.push([cause.status, request]) > 1;
    const { keys } = createClient({ baseUrl, onUnavailable });
    expect([(await keys.verifyKey({ key })).valid, (await keys.verifyKey({ key })).valid]).toEqual([false, true]);
    expect(asked[0]).toEqual([503, { key }]);
    // Anything but true is a refusal.
    const odd = createClient({ baseUrl, onUnavailable: (() => "yes") as never });
    expect((await odd.keys.verifyKey({ key })).valid).toBe(false);
  });

  it.each([400, 401, 403, 404, 413, 307])("throws for wrong use: %i", async (status) => {
    const { baseUrl, requests } = await serve(sendJson(status, errorBody("SOME_CODE")));
    const call = createClient({ baseUrl, onUnavailable: "allow" }).keys.verifyKey({ key });
    expect(await failureOf(call)).toMatchObject({ status });
    expect(requests).toHaveLength(1);
  });

  it("throws for a wrong root key, also once the service answers 429 for it", async () => {
    const { baseUrl } = await serve(sendJson(429, errorBody("TOO_MANY_REQUESTS"), { "retry-after": "1" }));
    const call = createClient({ baseUrl, rootKey, onUnavailable: "allow" }).keys.verifyKey({ key });
    expect(await failureOf(call)).toMatchObject({ status: 429, code: "TOO_MANY_REQUESTS" });
  });

  it("takes two seconds at most, unless the caller says otherwise", async () => {
    const { baseUrl } = await serve(() => {});
    const { cause } = await createClient({ baseUrl }).keys.verifyKey({ key });
    expect(cause?.message).toBe("no answer within 2000 ms");
    const other = await createClient({ baseUrl, timeoutMs: 50 }).keys.verifyKey({ key }, { timeoutMs: 40 });
    expect(other.cause?.message).toBe("no answer within 40 ms");
  });

  it("stays the caller's to give up", async () => {
    const controller = new AbortController();
    const { baseUrl } = await serve(() => controller.abort(new Error("the user went away")));
    const call = createClient({ baseUrl, onUnavailable: "allow" }).keys.verifyKey({ key }, controller);
    await expect(call).rejects.toThrow("the user went away");
  });

  it("tells nothing secret", async () => {
    const { baseUrl } = await serve(unavailable);
    expect(printed(await createClient({ baseUrl, rootKey }).keys.verifyKey({ key }))).not.toMatch(/live_|root-/);
  });
});

describe("the API of a client", () => {
  it("is named in every call about keys that names none", async () => {
    const { baseUrl, requests } = await serve(sendJson(200, { ...answer, keys: [] }));
    const { keys, apis } = createClient({ baseUrl, rootKey, apiId: "weather" });
    await keys.verifyKey({ key });
    await keys.verifyKey({ key, apiId: undefined });
    await keys.createKey({ remaining: 1 });
    await keys.listKeys({});
    await keys.createKey({ apiId: "maps" });
    await keys.getKey({ keyId: "key_1" });
    await apis.deleteApi({ apiId: "maps" });
    expect(requests.map(({ body }) => body)).toEqual([
      { apiId: "weather", key },
      { apiId: "weather", key },
      { apiId: "weather", remaining: 1 },
      { apiId: "weather" },
      { apiId: "maps" },
      { keyId: "key_1" },
      { apiId: "maps" },
    ]);
  });

  it("is never taken for the one that a method of APIs is about", async () => {
    const { baseUrl, requests } = await serve(sendJson(400, errorBody("BAD_REQUEST")));
    const { apis } = createClient({ baseUrl, rootKey, apiId: "weather" });
    await expect(apis.deleteApi({} as never)).rejects.toThrow("in words");
    expect(requests[0]?.body).toEqual({});
  });
});

describe("a call that fails in passing", () => {
  it.each<[string, RequestListener]>([
    ["503", unavailable],
    ["429", sendJson(429, errorBody("TOO_MANY_REQUESTS"))],
    ["a broken connection", cutOff],
    ["502 of a proxy", sendText(502, "")],
  ])("is made again after %s, a change under the same idempotency key", async (_, listener) => {
    const created = { keyId: "key_1", key };
    const { baseUrl, requests } = await serve(inTurn(listener, listener, sendJson(200, created)));
    expect(await createClient({ baseUrl, rootKey }).keys.createKey({ apiId: "a" })).toEqual(created);
    const [first, ...others] = idempotencyKeys(requests);
    expect(first).toMatch(/^[0-9a-f]{32}$/);
    expect(others).toEqual([first, first]);
  });

  it("has an idempotency key of its own in each call, or the caller's", async () => {
    const { baseUrl, requests } = await serve(sendJson(200, {}));
    const { keys } = createClient({ baseUrl, rootKey });
    await keys.deleteKey({ keyId: "key_1" });
    await keys.deleteKey({ keyId: "key_1" });
    await keys.deleteKey({ keyId: "key_1" }, { idempotencyKey: "mine" });
    await keys.getKey({ keyId: "key_1" });
    const [first, second, ...others] = idempotencyKeys(requests);
    expect(first).not.toBe(second);
    expect(others).toEqual(["mine", undefined]);
  });

  it("is made three times at most, and then fails as the last time", async () => {
    const { baseUrl, requests } = await serve(inTurn(cutOff, cutOff, unavailable));
    const failure = await failureOf(createClient({ baseUrl, rootKey }).keys.getKey({ keyId: "key_1" }));
    expect(failure).toMatchObject({ code: "SERVICE_UNAVAILABLE", retryable: true });
    expect(requests).toHaveLength(3);
  });

  it("waits as long as the service asks, and not at all if there is no time for it", async () => {
    const asks = (seconds: string) => sendJson(503, errorBody("SERVICE_UNAVAILABLE"), { "retry-after": seconds });
    const patient = await serve(inTurn(asks("1"), sendJson(200, {})));
    const startedMs = performance.now();
    await createClient({ baseUrl: patient.baseUrl, rootKey }).keys.getKey({ keyId: "key_1" });
    expect(performance.now() - startedMs).toBeGreaterThan(990);

    const { baseUrl, requests } = await serve(asks("60"));
    const failure = await failureOf(createClient({ baseUrl, rootKey }).keys.getKey({ keyId: "key_1" }));
    expect(failure).toMatchObject({ status: 503, retryAfterMs: 60_000 });
    expect(requests).toHaveLength(1);
  });

  it("ends with its time, also in a pause", async () => {
    const { baseUrl } = await serve(inTurn(unavailable, () => {}));
    const call = createClient({ baseUrl, rootKey, timeoutMs: 400 }).keys.getKey({ keyId: "key_1" });
    expect(await failureOf(call)).toMatchObject({ code: "TIMEOUT" });
    const controller = new AbortController();
    const waiting = await serve(sendJson(503, errorBody("SERVICE_UNAVAILABLE"), { "retry-after": "5" }));
    const given = createClient({ baseUrl: waiting.baseUrl, rootKey }).keys.getKey({ keyId: "key_1" }, controller);
    setTimeout(() => controller.abort(new Error("enough")), 100);
    await expect(given).rejects.toThrow("enough");
  });

  it.each<[string, (client: ReturnType<typeof createClient>) => Promise<unknown>]>([
    [
      "ratelimits.limit",
      ({ ratelimits }) => ratelimits.limit({ namespace: "n", identifier: "i", limit: 1, duration: 1000 }),
    ],
    ["keys.explainKey", ({ keys }) => keys.explainKey({ key })],
  ])("is not made again where that would count twice or ask much: %s", async (_, call) => {
    const { baseUrl, requests } = await serve(unavailable);
    await failureOf(call(createClient({ baseUrl, rootKey })));
    expect(requests).toHaveLength(1);
  });

  it.each([400, 401, 403, 404, 409, 500])("is not made again after %i", async (status) => {
    const { baseUrl, requests } = await serve(sendJson(status, errorBody("SOME_CODE")));
    const failure = await failureOf(createClient({ baseUrl, rootKey }).keys.getKey({ keyId: "key_1" }));
    expect(failure.retryable).toBe(false);
    expect(requests).toHaveLength(1);
  });

  it("sends no idempotency key that the service would ignore", async () => {
    const { baseUrl, requests } = await serve(sendJson(200, answer));
    const options = { idempotencyKey: "order-1" } as object;
    const call = createClient({ baseUrl, rootKey }).keys.getKey({ keyId: "key_1" }, options);
    await expect(call).rejects.toThrow(new TypeError("this method takes no idempotencyKey"));
    expect(requests).toEqual([]);
  });
});

describe("an error", () => {
  it("tells which fields are wrong", async () => {
    const violations = [{ path: "refill.amount", message: "must be at least 1" }];
    const { baseUrl } = await serve(sendJson(400, errorBody("BAD_REQUEST", { violations })));
    const failure = await failureOf(createClient({ baseUrl, rootKey }).keys.createKey({ apiId: "a" }));
    expect(failure).toMatchObject({ code: "BAD_REQUEST", violations, requestId: "req_9", retryable: false });
  });

  it("is recognised also if another copy of the package made it", () => {
    const made = new LatchkeyError("TIMEOUT", "no answer");
    expect(isLatchkeyError(made)).toBe(true);
    const foreign = Object.assign(new Error("no answer"), { [Symbol.for("@latchkey/client.error")]: true });
    expect(isLatchkeyError(foreign)).toBe(true);
    for (const other of [
      new Error("x"),
      Object.assign(new Error("x"), { name: "LatchkeyError" }),
      null,
      "x",
      undefined,
    ])
      expect(isLatchkeyError(other)).toBe(false);
  });
});

describe("a list", () => {
  const pages = inTurn(
    sendJson(200, { keys: [{ keyId: "a" }, { keyId: "b" }], cursor: "next" }),
    sendJson(200, { keys: [], cursor: "last" }),
    sendJson(200, { keys: [{ keyId: "c" }] }),
  );

  it("is a page, and goes on page after page with `for await`", async () => {
    const { baseUrl, requests } = await serve(pages);
    const found: string[] = [];
    const request = { apiId: "api", limit: 2 };
    for await (const { keyId } of createClient({ baseUrl, rootKey }).keys.listKeys(request)) found.push(keyId);
    expect(found).toEqual(["a", "b", "c"]);
    expect(requests.map(({ body }) => body)).toEqual([
      request,
      { ...request, cursor: "next" },
      { ...request, cursor: "last" },
    ]);
    expect(await createClient({ baseUrl, rootKey }).keys.listKeys(request)).toEqual({ keys: [{ keyId: "c" }] });
  });

  it("fails where a page fails", async () => {
    const failing = inTurn(
      sendJson(200, { owners: [{ ownerId: "a" }], cursor: "x" }),
      sendJson(403, errorBody("FORBIDDEN")),
    );
    const { baseUrl } = await serve(failing);
    const found: string[] = [];
    const reading = async () => {
      for await (const { ownerId } of createClient({ baseUrl, rootKey }).owners.listOwners({})) found.push(ownerId);
    };
    expect(await failureOf(reading())).toMatchObject({ code: "FORBIDDEN" });
    expect(found).toEqual(["a"]);
  });
});

it.each<[string, Partial<ClientOptions>]>([
  ["a base URL that is none", { baseUrl: "keys.example.com" }],
  ["a base URL of another protocol", { baseUrl: "ftp://keys.example.com" }],
  ["credentials in the base URL", { baseUrl: "http://user:password@keys.example.com" }],
  ["a query in the base URL", { baseUrl: "http://keys.example.com/?a=b" }],
  ["an empty root key", { rootKey: "" }],
  ["no time", { timeoutMs: 0 }],
  ["a misspelt choice", { onUnavailable: "alow" as never }],
  ["a time that timers take for none", { timeoutMs: Number.POSITIVE_INFINITY }],
])("createClient refuses %s", (_, options) => {
  expect(() => createClient({ baseUrl: "http://keys.example.com", ...options })).toThrow(/must be/);
});

it("createClient refuses an option that does not exist", () => {
  const misspelt = { baseUrl: "http://keys.example.com", apiID: "weather" };
  expect(() => createClient(misspelt)).toThrow(
    "createClient has no option apiID; it has baseUrl, rootKey, fetch, apiId, timeoutMs, onUnavailable",
  );
});

it("the SDK uses nothing of Node", () => {
  const folder = join(import.meta.dirname, "../../src/sdk");
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".ts"));
  const sources = files.map((name) => readFileSync(join(folder, name), "utf8"));
  expect(sources.length).toBeGreaterThan(5);
  expect(sources.join()).not.toMatch(/"node:|\b(process|Buffer|require)\b/);
});
