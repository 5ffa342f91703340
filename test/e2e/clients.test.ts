import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import type { ListKeysResponse } from "../../src/sdk/index.ts";
import { clientKinds, clientOf } from "../support/clients.ts";
import { oneEngine } from "../support/engines.ts";
import { startTestServer } from "../support/in-process-server.ts";
import { share } from "./share.ts";

describe.each(oneEngine)("on $name", (engine) => {
  const server = share(async () => startTestServer({ settings: await engine.settings() }));

  describe.each(clientKinds)("a client over %s", (kind) => {
    it("creates, verifies, reads, changes and deletes a key", async () => {
      const { baseUrl, rootKey } = server();
      const client = clientOf(kind, baseUrl, rootKey);

      const created = await client.createKey({
        apiId: "api",
        prefix: "acme_live",
        ownerId: "user_1",
        name: "first",
        meta: { plan: "pro", seats: [1, 2] },
        remaining: 2,
        refill: { interval: "monthly", amount: 10 },
      });
      expect(created.key).toMatch(/^acme_live_[0-9A-Za-z]{39}$/);
      expect(created.keyId).toMatch(/^key_[0-9A-Za-z]{22}$/);

      expect(await client.verifyKey({ key: created.key, apiId: "api" })).toEqual({
        keyId: created.keyId,
        valid: true,
        code: "VALID",
        meta: { plan: "pro", seats: [1, 2] },
        remaining: 1,
        ownerId: "user_1",
        name: "first",
        requestId: expect.stringMatching(/^req_/),
        ratelimits: [],
      });
      expect(await client.verifyKey({ key: created.key })).toMatchObject({ valid: true, remaining: 0 });
      expect(await client.verifyKey({ key: created.key })).toMatchObject({
        valid: false,
        code: "USAGE_EXCEEDED",
        remaining: 0,
      });

      const stored = {
        keyId: created.keyId,
        start: created.key.slice(0, "acme_live_".length + 4),
        apiId: "api",
        ownerId: "user_1",
        name: "first",
        meta: { plan: "pro", seats: [1, 2] },
        enabled: true,
        createdAt: expect.any(Number),
        updatedAt: expect.any(Number),
        remaining: 0,
        spent: 2,
        refill: { interval: "monthly", amount: 10, carryOver: false, nextRefillAt: expect.any(Number) },
        ratelimits: [],
        permissions: [],
        ipAllow: [],
        secrets: [{ start: created.key.slice(0, "acme_live_".length + 4), createdAt: expect.any(Number) }],
        version: 1,
      };
      expect(await client.getKey({ keyId: created.keyId })).toEqual(stored);
      expect(await client.getKey({ key: created.key })).toEqual(stored);

      const keyId = created.keyId;
      expect(await client.updateRemaining({ keyId, op: "set", value: 50 })).toEqual({ remaining: 50 });
      expect(await client.verifyKey({ key: created.key })).toMatchObject({ valid: true, remaining: 49 });
      expect(await client.updateRemaining({ keyId, op: "increment", value: 2 })).toEqual({ remaining: 51 });
      expect(await client.updateRemaining({ keyId, op: "decrement", value: 50 })).toEqual({ remaining: 1 });
      await expect(client.updateRemaining({ keyId, op: "decrement", value: 2 })).rejects.toThrow("fall below 0");
      expect(await client.getKey({ keyId })).toMatchObject({ remaining: 1, version: 4 });

      const rerolled = await client.rerollKey({ keyId, overlap: 3_600_000 });
      expect(rerolled).toEqual({ keyId, key: expect.stringMatching(/^acme_live_[0-9A-Za-z]{39}$/) });
      expect(await client.verifyKey({ key: rerolled.key })).toMatchObject({ keyId, valid: true, remaining: 0 });
      expect(await client.verifyKey({ key: created.key })).toMatchObject({ keyId, code: "USAGE_EXCEEDED" });
      const start = rerolled.key.slice(0, "acme_live_".length + 4);
      const both = [
        { start, createdAt: expect.any(Number) },
        { start: stored.start, createdAt: expect.any(Number), expires: expect.any(Number) },
      ];
      expect(await client.getKey({ key: created.key })).toMatchObject({ keyId, start, version: 5, secrets: both });
      const last = await client.rerollKey({ keyId });
      expect(await client.getKey({ keyId })).toMatchObject({ version: 6, secrets: [{ start: last.key.slice(0, 14) }] });
      for (const { key } of [created, rerolled])
        expect(await client.verifyKey({ key })).toMatchObject({ valid: false, code: "NOT_FOUND" });
      await client.updateRemaining({ keyId, op: "set", value: 1 });
      const updated = await client.updateKey({
        keyId,
        ifVersion: 7,
        name: "second",
        enabled: false,
        ratelimit: { limit: 1, duration: 60_000 },
      });
      expect(updated).toMatchObject({ ownerId: "user_1", name: "second", enabled: false, version: 8, remaining: 1 });
      expect(updated).toEqual(await client.getKey({ keyId }));
      expect(await client.verifyKey({ key: last.key })).toMatchObject({ code: "DISABLED", name: "second" });
      await expect(client.updateKey({ keyId, ifVersion: 7, enabled: true })).rejects.toThrow("read it again");
      await client.updateKey({ keyId, enabled: true });
      expect(await client.verifyKey({ key: last.key })).toMatchObject({ valid: true, ratelimit: { limit: 1 } });
      expect(await client.verifyKey({ key: last.key })).toMatchObject({ code: "RATE_LIMITED" });

      const digest = createHash("sha256").update(`sk_${kind}`).digest("hex");
      const toImport = { digest, start: "sk_", meta: { old: true }, remaining: 1 };
      const { results } = await client.importKeys({ apiId: "old", keys: [toImport, toImport] });
      expect(results).toEqual([
        { keyId: expect.stringMatching(/^key_/) },
        { error: { code: "CONFLICT", message: "there is a key with this digest" } },
      ]);
      expect(await client.verifyKey({ key: `sk_${kind}`, apiId: "old" })).toMatchObject({
        keyId: results[0]?.keyId,
        valid: true,
        meta: { old: true },
        remaining: 0,
      });
      expect(await client.verifyKey({ key: `sk_${kind}x` })).toMatchObject({ code: "NOT_FOUND" });

      expect(await client.deleteKey({ keyId: created.keyId })).toEqual({});
      expect(await client.verifyKey({ key: last.key })).toEqual({
        valid: false,
        code: "NOT_FOUND",
        meta: {},
        requestId: expect.stringMatching(/^req_/),
        ratelimits: [],
      });
    });
  });

  it("reads a key by GET, and by its secret in the body of a POST only", async () => {
    const { baseUrl, rootKey } = server();
    const { key, keyId } = await clientOf("sdk", baseUrl, rootKey).createKey({ apiId: "api" });
    const headers = { authorization: `Bearer ${rootKey}`, "content-type": "application/json" };
    const ask = async (path: string, init: RequestInit = {}) => {
      const { status, headers: answered } = await fetch(baseUrl + path, { headers, ...init });
      return { status, cache: answered.get("cache-control") };
    };
    const read = async (path: string, init: RequestInit = {}) =>
      (await fetch(baseUrl + path, { headers, ...init })).json();

    const stored = await read(`/v1/keys.getKey?keyId=${keyId}`);
    expect(stored).toMatchObject({ keyId, apiId: "api", enabled: true, version: 1 });
    expect(await read("/v1/keys.whoami", { method: "POST", body: JSON.stringify({ key }) })).toEqual(stored);
    expect(await ask(`/v1/keys.getKey?keyId=${keyId}`, { method: "HEAD" })).toEqual({ status: 200, cache: "no-store" });
    expect((await ask(`/v1/keys.getKey?key=${key}`)).status).toBe(400);
    expect((await ask("/v1/keys.getKey?keyId=key_0000000000000000000000")).status).toBe(404);
    expect((await ask(`/v1/keys.getKey?keyId=${keyId}`, { headers: {} })).status).toBe(401);
    expect((await ask("/v1/keys.whoami")).status).toBe(405);
  });

  it("removes by null what a key can be without, once for an Idempotency-Key", async () => {
    const { baseUrl, rootKey } = server();
    const client = clientOf("sdk", baseUrl, rootKey);
    const { keyId } = await client.createKey({
      apiId: "api",
      ownerId: "owner",
      name: "name",
      meta: { a: 1 },
      expires: Date.now() + 3_600_000,
      remaining: 5,
      refill: { interval: "daily", amount: 5 },
      ratelimit: { limit: 5, duration: 60_000, async: false },
    });
    const nothing = { ownerId: null, name: null, meta: null, expires: null, ratelimit: null, refill: null };
    const idempotencyKey = { idempotencyKey: "once" };
    const bare = await client.updateKey({ keyId, ...nothing }, idempotencyKey);
    expect(bare).toMatchObject({ keyId, enabled: true, meta: {}, remaining: 5, version: 2 });
    for (const field of ["ownerId", "name", "expires", "ratelimit", "refill"]) expect(bare).not.toHaveProperty(field);
    expect(await client.updateKey({ keyId, ...nothing }, idempotencyKey)).toEqual(bare);
    await expect(client.updateKey({ keyId, name: "x" }, idempotencyKey)).rejects.toMatchObject({ status: 409 });
    // @ts-expect-error: it cannot be removed.
    await expect(client.updateKey({ keyId, enabled: null })).rejects.toMatchObject({ status: 400 });
    for (let i = 0; i < 2; i++) await client.deleteKey({ keyId }, idempotencyKey);
    await expect(client.deleteKey({ keyId })).rejects.toMatchObject({ status: 404 });
  });

  describe("lists keys", () => {
    it.each(clientKinds)("page by page, newest first, over %s", async (kind) => {
      const { baseUrl, rootKey } = server();
      const client = clientOf(kind, baseUrl, rootKey);
      const [apiId, ownerId] = [`listed over ${kind}`, `owner over ${kind}`];
      const ids: string[] = [];
      for (const name of ["first", "second", "third"]) {
        ids.push((await client.createKey({ apiId, ownerId, name, remaining: 5 })).keyId);
      }
      await client.createKey({ apiId: "another", ownerId, enabled: false });
      // Keys of one millisecond have no order of their own.
      const newest = await Promise.all(ids.toSorted().map((keyId) => client.getKey({ keyId })));
      newest.reverse();
      const page = await client.listKeys({ apiId, limit: 2 });
      expect(page).toEqual({ keys: newest.slice(0, 2), cursor: expect.any(String) });
      const rest = await client.listKeys({ apiId, limit: 2, cursor: page.cursor as string });
      expect(rest).toEqual({ keys: newest.slice(2) });
      const namesOf = async (request: Parameters<typeof client.listKeys>[0]) =>
        (await client.listKeys(request)).keys.map(({ name }) => name);
      expect(new Set(await namesOf({ ownerId }))).toEqual(new Set(["first", "second", "third", undefined]));
      expect(await namesOf({ ownerId, enabled: false })).toEqual([undefined]);
      expect(await namesOf({ ownerId, apiId, search: "s" })).toEqual(["second"]);
      expect(await client.listKeys({ apiId, expiresBefore: Date.now() })).toEqual({ keys: [] });
      expect(await client.listKeys({ apiId: "unknown" })).toEqual({ keys: [] });
    });

    it("in answers that are not too large for a client of gRPC, with as much metadata as there may be", async () => {
      const { baseUrl, rootKey } = server();
      const client = clientOf("grpc-js", baseUrl, rootKey);
      // In binary each number takes 11 bytes: in that form, no request could hold it.
      const meta = { a: Array(8188).fill(0) };
      const { createKey } = clientOf("sdk", baseUrl, rootKey);
      // Together 5 MB in binary, where a client of gRPC takes 4.
      const made = 60;
      for (let i = 0; i < made; i++) await createKey({ apiId: "large", meta });
      let shown = 0;
      let cursor: string | undefined;
      do {
        const page = await client.listKeys({ apiId: "large", limit: 100, ...(cursor !== undefined && { cursor }) });
        shown += page.keys.length;
        cursor = page.cursor;
      } while (cursor !== undefined);
      expect(shown).toBe(made);
    });

    it("by GET, as an API's keys too", async () => {
      const { baseUrl, rootKey } = server();
      const client = clientOf("sdk", baseUrl, rootKey);
      for (let made = 0; made < 51; made++) await client.createKey({ apiId: "my api" });
      const ask = async (path: string, headers = { authorization: `Bearer ${rootKey}` }) => {
        const answer = await fetch(baseUrl + path, { headers });
        return { status: answer.status, body: (await answer.json()) as ListKeysResponse };
      };
      for (const path of ["/v1/keys.listKeys", "/v1/apis.listKeys"]) {
        const page = await ask(`${path}?apiId=my+api&enabled=true`);
        expect(page).toEqual({ status: 200, body: await client.listKeys({ apiId: "my api" }) });
        expect(page.body.keys).toHaveLength(50);
        const { cursor } = page.body;
        expect((await ask(`${path}?apiId=my+api&limit=100&cursor=${cursor}`)).body.keys).toHaveLength(1);
        expect((await ask(`${path}?apiId=my+api&limit=101`)).status).toBe(400);
        expect((await ask(`${path}?apiId=my+api&cursor=x${cursor}`)).status).toBe(400);
        expect((await ask(path)).status).toBe(400);
        expect((await ask(`${path}?apiId=my+api`, { authorization: "Bearer wrong" })).status).toBe(401);
      }
    });
  });

  it("takes a key's counter away by null, which nothing but set allows", async () => {
    const { baseUrl, rootKey } = server();
    const client = clientOf("sdk", baseUrl, rootKey);
    const { key, keyId } = await client.createKey({ apiId: "api", remaining: 0 });
    expect(await client.verifyKey({ key })).toMatchObject({ code: "USAGE_EXCEEDED" });
    const refused = { status: 400, message: expect.stringContaining("null with set only") };
    await expect(client.updateRemaining({ keyId, op: "increment", value: null })).rejects.toMatchObject(refused);
    await expect(client.updateRemaining({ keyId, op: "set" })).rejects.toMatchObject({ status: 400 });
    expect(await client.updateRemaining({ keyId, op: "set", value: null })).toEqual({});
    const { remaining, valid } = await client.verifyKey({ key });
    expect([valid, remaining]).toEqual([true, undefined]);
  });
});
