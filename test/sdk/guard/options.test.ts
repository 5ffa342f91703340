import { describe, expect, it, vi } from "vitest";
import { createGuard } from "../../../src/sdk/guard/guard.ts";
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
