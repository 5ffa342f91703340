import { beforeAll, describe, expect, it } from "vitest";
import type { LatchkeyClient } from "../../gen/latchkey/v1/client.ts";
import { composePublicApi } from "../support/compose-public-api.ts";
import { guardedApi } from "../support/keys-by-code.ts";
import { rawClient } from "../support/raw-client.ts";
import { testRootKey } from "../support/test-root-key.ts";

const bearer = (key: string) => ({ authorization: `Bearer ${key}` });
let client: LatchkeyClient;
let ask: (query: string, headers: Record<string, string>) => Promise<Response>;

beforeAll(async () => {
  const api = composePublicApi();
  const baseUrl = `http://127.0.0.1:${await api.onePort.listen(0, "127.0.0.1")}`;
  client = rawClient({ baseUrl, rootKey: testRootKey });
  ask = (query, headers) => fetch(`${baseUrl}/v1/authz${query}`, { headers });
  return () => api.onePort.close(0);
});

describe("/v1/authz", () => {
  it("tells when a limit lets requests pass again, by its name", async () => {
    const ratelimits = [{ name: "hour", limit: 1, duration: 3_600_000 }];
    await client.owners.createOwner({ ownerId: "user_7", ratelimits });
    const { key } = await client.keys.createKey({ apiId: guardedApi, ownerId: "user_7" });
    expect((await ask("", bearer(key))).headers.get("ratelimit")).toMatch(/^"hour";r=0;t=\d+$/);
    const { status, headers } = await ask("", bearer(key));
    const seconds = headers.get("retry-after");
    expect([status, headers.get("ratelimit")]).toEqual([429, `"hour";r=0;t=${seconds}`]);
    expect(Number(seconds)).toBeGreaterThan(0);
    expect(Number(seconds)).toBeLessThanOrEqual(3600);
    expect(headers.get("ratelimit-policy")).toBe('"hour";q=1;w=3600');
  });

  it("tells how every limit stands, also where the key passes, and nothing of a key without any", async () => {
    const ratelimits = [{ name: "hour", limit: 9, duration: 3_600_000 }];
    const ratelimit = { limit: 5, duration: 1500, async: false };
    const { key } = await client.keys.createKey({ apiId: guardedApi, ratelimit, ratelimits, permissions: ["a"] });
    const { headers } = await ask("", bearer(key));
    expect(headers.get("ratelimit-policy")).toBe('"default";q=5;w=2, "hour";q=9;w=3600');
    expect(headers.get("ratelimit")).toMatch(/^"default";r=4;t=\d, "hour";r=8;t=\d+$/);
    expect(headers.get("retry-after")).toBeNull();
    const refused = await ask("?permissions=b", bearer(key));
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([403, null]);
    expect(refused.headers.get("ratelimit-policy")).toBe('"default";q=5;w=2, "hour";q=9;w=3600');
    const unlimited = await client.keys.createKey({ apiId: guardedApi, remaining: 1 });
    const names = [...(await ask("", bearer(unlimited.key))).headers.keys()];
    expect(names.filter((name) => /ratelimit|retry/.test(name))).toEqual([]);
  });

  it("tells when a counter that is used up is refilled, if it ever is", async () => {
    const refill = { interval: "daily", amount: 1 } as const;
    const refilled = await client.keys.createKey({ apiId: guardedApi, remaining: 0, refill });
    const answer = await ask("", bearer(refilled.key));
    const seconds = Number(answer.headers.get("retry-after"));
    expect([answer.status, seconds > 0, seconds <= 86_400]).toEqual([429, true, true]);
    const { reason } = await client.keys.verifyKey({ key: refilled.key });
    expect(reason).toMatchObject({ check: "counter", of: "key" });
    expect((reason?.nextRefillAt ?? 1) % 86_400_000).toBe(0);
    const spent = await client.keys.createKey({ apiId: guardedApi, remaining: 0 });
    expect((await ask("", bearer(spent.key))).headers.get("retry-after")).toBeNull();
    await client.owners.createOwner({ ownerId: "user_8", remaining: 0, refill: { ...refill, interval: "monthly" } });
    const shared = await client.keys.createKey({ apiId: guardedApi, ownerId: "user_8" });
    expect(Number((await ask("", bearer(shared.key))).headers.get("retry-after"))).toBeGreaterThan(0);
  });
});
