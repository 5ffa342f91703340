import { describe, expect, it } from "vitest";
import { createClient } from "../../../src/sdk/index.ts";
import { startTestServer } from "../../support/in-process-server.ts";
import { rawClient } from "../../support/raw-client.ts";
import { TestClock } from "../../support/test-clock.ts";
import { frameworks } from "./frameworks.ts";

/** By so much the service's clock is behind until a test sets it right. */
const aMomentMs = 2000;

/** A service, the client of an API, and keys of it and of others. */
async function setUp() {
  const clock = new TestClock(Date.now() - aMomentMs);
  const server = await startTestServer({ clock });
  const { keys, owners } = rawClient(server);
  const create = async (properties: object = {}) =>
    (await keys.createKey({ apiId: "weather", ownerId: "acme", ...properties })).key;
  return { server, clock, keys, owners, create, client: createClient({ baseUrl: server.baseUrl, apiId: "weather" }) };
}

const bearer = (key: string) => ({ authorization: `Bearer ${key}` });

describe.each(Object.entries(frameworks))("a route behind %s", (name, start) => {
  /** Over Connect the error is the framework's, and has no body of ours. */
  const refusedAs = (code: string) =>
    name === "connect" ? undefined : { error: expect.objectContaining({ code, message: expect.any(String) }) };

  it("lets a valid key pass, in either header, and knows whose it is", async () => {
    const { client, create } = await setUp();
    const ask = await start(client, {});
    const key = await create();
    for (const headers of [bearer(key), { authorization: `bearer  ${key}` }, { "x-api-key": key }]) {
      const { status, body } = await ask(headers);
      expect([status, body]).toEqual([200, { keyId: expect.stringMatching(/^key_/), ownerId: "acme" }]);
    }
    // A scheme that is not ours hides no key.
    expect(await ask({ authorization: "Basic abc", "x-api-key": key })).toMatchObject({ status: 200 });
  });

  it("refuses by every code, with what the caller needs to know", async () => {
    const { client, create, keys, clock } = await setUp();
    const ask = await start(client, {});
    const { key: disabled, keyId } = await keys.createKey({ apiId: "weather" });
    await keys.updateKey({ keyId, enabled: false });
    const expired = await create({ expires: clock.nowMs() + 1000 });
    clock.advance(aMomentMs);
    const limited = await create({ ratelimits: [{ name: "minute", limit: 3, duration: 60_000 }] });
    for (let i = 0; i < 3; i++) expect((await ask(bearer(limited))).status).toBe(200);
    const strict = await create({ ratelimit: { limit: 1, duration: 10_000, async: false } });
    expect((await ask(bearer(strict))).status).toBe(200);

    const cases: [string, Record<string, string>, number, Record<string, string | null>][] = [
      ["MISSING_KEY", {}, 401, { "www-authenticate": "Bearer" }],
      ["NOT_FOUND", bearer("nonsense"), 401, { "www-authenticate": 'Bearer error="invalid_token"' }],
      ["DISABLED", bearer(disabled), 401, { "www-authenticate": 'Bearer error="invalid_token"' }],
      ["EXPIRED", bearer(expired), 401, { "www-authenticate": 'Bearer error="invalid_token"' }],
      ["FORBIDDEN", bearer(await create({ apiId: "maps" })), 403, { "www-authenticate": null }],
      ["USAGE_EXCEEDED", bearer(await create({ remaining: 0 })), 429, { "retry-after": null, ratelimit: null }],
      ["RATE_LIMITED", bearer(limited), 429, { "ratelimit-policy": '"minute";q=3;w=60' }],
      ["RATE_LIMITED", bearer(strict), 429, { "ratelimit-policy": '"default";q=1;w=10' }],
    ];
    for (const [code, headers, status, expected] of cases) {
      const answer = await ask(headers);
      expect([answer.status, answer.body], code).toEqual([status, refusedAs(code)]);
      for (const [header, value] of Object.entries(expected)) expect(answer.headers.get(header), code).toBe(value);
    }
    const { headers } = await ask(bearer(limited));
    const seconds = Number(headers.get("retry-after"));
    expect(seconds).toBeGreaterThan(0);
    expect(seconds).toBeLessThanOrEqual(60);
    expect(headers.get("ratelimit")).toBe(`"minute";r=0;t=${seconds}`);
  });

  it("asks for permissions, costs and an address, and has its key where it is told", async () => {
    const { client, create, keys } = await setUp();
    const key = await create({ permissions: ["docs.read"], remaining: 25 });
    const costly = await start(client, { permissions: "docs.read", remaining: { cost: 10 } });
    expect([(await costly(bearer(key))).status, (await costly(bearer(key))).status]).toEqual([200, 200]);
    expect(await costly(bearer(key))).toMatchObject({ status: 429, body: refusedAs("USAGE_EXCEEDED") });
    const writing = await start(client, { permissions: "docs.write" });
    expect(await writing(bearer(key))).toMatchObject({ status: 403, body: refusedAs("INSUFFICIENT_PERMISSIONS") });
    expect((await keys.getKey({ key })).remaining).toBe(5);

    const fenced = await create({ ipAllow: ["192.0.2.0/24"] });
    const byAddress = await start(client, { ipHeader: "x-end-user", keyHeader: "x-own-key" });
    expect((await byAddress({ "x-own-key": fenced, "x-end-user": "192.0.2.7" })).status).toBe(200);
    expect((await byAddress({ "x-own-key": fenced, "x-end-user": "198.51.100.7" })).status).toBe(403);
    expect((await byAddress(bearer(fenced))).status).toBe(401);
  });

  it("names the limit of the owner that has refused", async () => {
    const { client, create, owners } = await setUp();
    await owners.createOwner({ ownerId: "acme", ratelimits: [{ name: "day", limit: 1, duration: 86_400_000 }] });
    const ask = await start(client, {});
    const key = await create({ ratelimits: [{ name: "day", limit: 100, duration: 60_000 }] });
    expect((await ask(bearer(key))).status).toBe(200);
    expect((await ask(bearer(key))).headers.get("ratelimit-policy")).toBe('"day";q=1;w=86400');
  });

  it("says how the limits stand, also of a request that passes, and when a counter is refilled", async () => {
    const { client, create } = await setUp();
    const ask = await start(client, {});
    const ratelimits = [{ name: "hour", limit: 9, duration: 3_600_000 }];
    const { status, headers } = await ask(
      bearer(await create({ ratelimit: { limit: 5, duration: 60_000 }, ratelimits })),
    );
    expect([status, headers.get("ratelimit-policy")]).toEqual([200, '"default";q=5;w=60, "hour";q=9;w=3600']);
    expect(headers.get("ratelimit")).toMatch(/^"default";r=4;t=\d+, "hour";r=8;t=\d+$/);
    const unlimited = await ask(bearer(await create({ remaining: 1 })));
    expect([unlimited.status, unlimited.headers.get("ratelimit")]).toEqual([200, null]);
    const used = await ask(bearer(await create({ remaining: 0, refill: { interval: "daily", amount: 1 } })));
    const seconds = Number(used.headers.get("retry-after"));
    expect([used.status, seconds > 0, seconds <= 86_400]).toEqual([429, true, true]);
  });

  it("gives the request id of a refusal to the caller, and of a verified key to the route", async () => {
    const { client, create } = await setUp();
    const ids: (string | undefined)[] = [];
    const verifyKey: typeof client.keys.verifyKey = async (...asked) => {
      const answer = await client.keys.verifyKey(...asked);
      ids.push(answer.requestId);
      return answer;
    };
    const ask = await start({ keys: { verifyKey } }, {});
    const { headers, body } = await ask(bearer(await create({ remaining: 0 })));
    expect(ids).toEqual([expect.stringMatching(/^req_/)]);
    expect(headers.get("x-request-id")).toBe(ids[0]);
    if (name !== "connect") expect(body).toMatchObject({ error: { requestId: ids[0] } });
    expect((await ask()).headers.get("x-request-id")).toBeNull();
  });

  it("answers 503 when nobody can decide, says so in the log, and passes nothing of it on", async () => {
    const { server, create } = await setUp();
    const key = await create();
    const logged: unknown[] = [];
    const texts: string[] = [];
    const log = (text: string, cause: unknown) => {
      texts.push(text);
      logged.push((cause as { code: string }).code);
    };
    const required = await startTestServer({ settings: { verifyAuth: "required" } });
    const unauthorized = await start(createClient({ baseUrl: required.baseUrl, rootKey: "not-a-root-key" }), { log });
    const { baseUrl } = server;
    const denying = await start(createClient({ baseUrl, timeoutMs: 5000 }), { log });
    const allowing = await start(createClient({ baseUrl, onUnavailable: "allow" }), { log });
    const asking = await start(createClient({ baseUrl, onUnavailable: "allow" }), { log, permissions: "docs.read" });
    await server.stop();
    for (const ask of [unauthorized, denying, asking]) {
      const { status, body, headers } = await ask(bearer(key));
      expect([status, body]).toEqual([503, refusedAs("UNAVAILABLE")]);
      expect(headers.get("www-authenticate")).toBeNull();
    }
    expect(logged).toEqual(["UNAUTHORIZED", "NETWORK_ERROR", "NETWORK_ERROR"]);
    expect(texts.map((text) => text.includes("set a valid rootKey in createClient"))).toEqual([true, false, false]);
    const allowed = await allowing(bearer(key));
    expect([allowed.status, allowed.body]).toEqual([200, { degraded: true }]);
  });

  it("takes a text that cannot be a key for one that does not exist", async () => {
    const { client } = await setUp();
    const ask = await start(client, { keyHeader: "x-own-key" });
    const long = await start(client, { log: () => expect.unreachable() });
    expect((await ask({ "x-own-key": "" })).status).toBe(401);
    // What strangers choose, and the service refuses as no key at all.
    const odd = await start(client, { keyOf: () => "with\0NUL", log: () => expect.unreachable() });
    expect((await odd()).status).toBe(401);
    // Servers of Node refuse headers of more than 16 KB themselves.
    const { status } = await long(bearer("k".repeat(name === "hono" || name === "web" ? 20_000 : 12_000)));
    expect(status).toBe(401);
  });
});

describe.each(Object.entries(frameworks).filter(([name]) => name !== "connect"))("a refusal of %s", (_, start) => {
  it("has the body that the API wants", async () => {
    const { client } = await setUp();
    const ask = await start(client, { bodyOf: ({ code }) => ({ problem: code }) });
    expect((await ask()).body).toEqual({ problem: "MISSING_KEY" });
  });
});
