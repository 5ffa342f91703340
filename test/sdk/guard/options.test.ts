import { runInNewContext } from "node:vm";
import { Hono } from "hono";
import { describe, expect, it, vi } from "vitest";
import { createGuard } from "../../../src/sdk/guard/guard.ts";
import { protect as protectHono } from "../../../src/sdk/guard/hono.ts";
import { protect as protectWeb } from "../../../src/sdk/guard/web.ts";
import { createClient } from "../../../src/sdk/index.ts";

const client = createClient({ baseUrl: "http://127.0.0.1:1", apiId: "weather" });

describe("protect", () => {
  it.each(["permission", "perRequests", "apiID"])("refuses the option %s, which does not exist", (name) => {
    expect(() => createGuard(client, { [name]: () => ({}) })).toThrow(`protect has no option ${name}; it has apiId, `);
  });

  it("asks for what the route asks for, also where a request has nothing to say of it", async () => {
    const asked: unknown[] = [];
    const verifyKey = async (request: object) => {
      asked.push(request);
      return { valid: true, degraded: false } as never;
    };
    const options = {
      apiId: "weather",
      permissions: "docs.read",
      perRequest: () => ({ permissions: undefined, ip: "::1" }),
    };
    await createGuard({ keys: { verifyKey } }, options)({}, () => "Bearer some_key");
    expect(asked).toEqual([{ apiId: "weather", permissions: "docs.read", ip: "::1", key: "some_key" }]);
  });

  it("waits for what a request asks for, and for its key", async () => {
    const asked: unknown[] = [];
    const verifyKey = async (request: object) => {
      asked.push(request);
      return { valid: true } as never;
    };
    const options = { perRequest: async () => ({ permissions: "docs.read" }), keyOf: async () => "some_key" };
    await createGuard({ keys: { verifyKey } }, options)({}, () => undefined);
    expect(asked).toEqual([{ permissions: "docs.read", key: "some_key" }]);
  });

  const odd: [string, () => unknown][] = [
    ["nothing", () => undefined],
    ["null", () => null],
    ["a text", () => "docs.read"],
    ["a list", () => [{ permissions: "docs.read" }]],
    ["a map", () => new Map([["permissions", "docs.read"]])],
    ["an instance", () => new (class Asking {})()],
    ["a function", () => () => ({ permissions: "docs.read" })],
    ["a promise of nothing", async () => undefined],
    ["a promise that is rejected", () => Promise.reject(new Error("no tenant"))],
    [
      "an exception",
      () => {
        throw new Error("no tenant");
      },
    ],
  ];
  it.each(odd)("answers 503, and asks nobody, where perRequest gives %s", async (_, perRequest) => {
    const verifyKey = () => expect.unreachable();
    const options = { perRequest: perRequest as () => object, log: () => {} };
    const guarded = await createGuard({ keys: { verifyKey } }, options)({}, () => "Bearer some_key");
    expect(guarded).toMatchObject({ refusal: { status: 503 } });
  });

  it("takes an object of another realm", async () => {
    const verifyKey = async () => ({ valid: true }) as never;
    const perRequest = () => runInNewContext("({ permissions: 'docs.read' })") as object;
    const guarded = await createGuard({ keys: { verifyKey } }, { perRequest })({}, () => "Bearer some_key");
    expect(guarded).toMatchObject({ key: { valid: true } });
  });

  it("refuses what is no client", () => {
    for (const none of [undefined, {}, { keys: {} }])
      expect(() => createGuard(none as never, {})).toThrow("protect needs a client of createClient");
  });

  it("logs an outage in one line a second, with what has caused it", async () => {
    const written = vi.spyOn(console, "error").mockImplementation(() => {});
    const guard = createGuard(client, {});
    const ask = () => guard({}, () => "Bearer some_key");
    try {
      for (let i = 0; i < 3; i++) expect(await ask()).toMatchObject({ refusal: { status: 503 } });
      expect(written.mock.calls).toEqual([[expect.stringMatching(/^latchkey: a key could not be verified: [^\n]+$/)]]);
      vi.spyOn(Date, "now").mockReturnValue(Date.now() + 1_000);
      await ask();
      expect(written.mock.calls[1]).toEqual([expect.stringContaining("(and 2 more before)")]);
    } finally {
      vi.restoreAllMocks();
    }
  });
});

describe("an answer that cannot be copied is passed on as it is, also for a key with limits:", () => {
  const ratelimit = { limit: 5, remaining: 4, reset: Date.now() + 60_000, duration: 60_000 };
  const limited = { keys: { verifyKey: async () => ({ valid: true, ratelimit }) as never } };
  const request = new Request("http://api.test/", { headers: { "x-api-key": "some_key" } });
  const answers: [string, () => Response][] = [
    // Node's Response refuses this status. Servers that upgrade connections make one that has it.
    ["an upgraded connection", () => Object.defineProperty(new Response(), "status", { value: 101 })],
    ["an error", () => Response.error()],
  ];

  it.each(answers)("%s, in Hono", async (_, make) => {
    const answer = make();
    const app = new Hono().get("/", protectHono(limited), () => answer);
    app.onError((error) => expect.fail(String(error)));
    expect(await app.request(request)).toBe(answer);
  });

  it.each(answers)("%s, of a web handler", async (_, make) => {
    const answer = make();
    expect(await protectWeb(limited, {}, () => answer)(request)).toBe(answer);
  });
});
