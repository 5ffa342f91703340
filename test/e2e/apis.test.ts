import { describe, expect, it, vi } from "vitest";
import { sha256 } from "../../src/ambient/crypto.ts";
import { clientKinds, latchkeyOf } from "../support/clients.ts";
import { sized } from "../support/deep.ts";
import { oneEngine } from "../support/engines.ts";
import { startTestServer } from "../support/in-process-server.ts";
import { share } from "./share.ts";

const defaults = {
  prefix: "live",
  byteLength: 16,
  ratelimit: { limit: 5, duration: 60_000 },
  remaining: 3,
  refill: { interval: "monthly", amount: 3 },
  costMax: 9,
} as const;

const storedDefaults = {
  ...defaults,
  ratelimit: { async: true, ...defaults.ratelimit },
  refill: { ...defaults.refill, carryOver: false },
};

const workerCounts = sized([1], [1, 2]);

describe.each(oneEngine)("on $name", (engine) => {
  // Tests of lists leave none behind.
  const server = share(async () => startTestServer({ settings: await engine.settings() }));

  describe.each(clientKinds)("a client over %s", (kind) => {
    it("creates, reads, lists and changes APIs, whose keys take over their defaults", async () => {
      const { baseUrl, rootKey } = server();
      const { apis, keys } = latchkeyOf(kind, baseUrl, rootKey);

      const created = await apis.createApi({ apiId: "payments", name: "Payments", defaults });
      const moments = { createdAt: expect.any(Number), updatedAt: expect.any(Number) };
      expect(created).toEqual({
        apiId: "payments",
        name: "Payments",
        defaults: storedDefaults,
        ...moments,
        version: 1,
        ownersRequired: false,
      });
      expect(await apis.getApi({ apiId: "payments" })).toEqual(created);
      await expect(apis.createApi({ apiId: "payments" })).rejects.toThrow("exists already");
      await expect(apis.getApi({ apiId: "another" })).rejects.toThrow("there is no such API");

      const { key, keyId } = await keys.createKey({ apiId: "payments", remaining: 1 });
      expect(key).toMatch(/^live_[0-9A-Za-z]{28}$/);
      const { refill, costMax } = storedDefaults;
      expect(await keys.getKey({ keyId })).toMatchObject({ remaining: 1, refill, costMax });
      const own = await keys.createKey({ apiId: "payments", costMax: 2 });
      expect(await keys.getKey({ keyId: own.keyId })).toMatchObject({ costMax: 2 });
      expect(await keys.verifyKey({ key })).toMatchObject({ valid: true, remaining: 0, ratelimit: { limit: 5 } });
      const plain = await keys.createKey({ apiId: "payments", useDefaults: false });
      expect(plain.key).toMatch(/^[0-9A-Za-z]{39}$/);
      expect((await keys.getKey({ keyId: plain.keyId })).costMax).toBeUndefined();

      const generated = await apis.createApi({});
      expect(generated).toEqual({
        apiId: expect.stringMatching(/^api_[0-9A-Za-z]{22}$/),
        ...moments,
        version: 1,
        ownersRequired: false,
      });
      const update = { apiId: "payments", ifVersion: 1, defaults: { remaining: 0 } };
      const updated = {
        ...created,
        defaults: { ...storedDefaults, remaining: 0 },
        updatedAt: expect.any(Number),
        version: 2,
        ownersRequired: false,
      };
      expect(await apis.updateApi(update)).toEqual(updated);
      await expect(apis.updateApi(update)).rejects.toThrow("its version is not ifVersion");

      const first = await apis.listApis({ limit: 1 });
      const second = await apis.listApis({ limit: 1, cursor: first.cursor as string });
      const listed = [...first.apis, ...second.apis].sort((a, b) => (a.apiId < b.apiId ? -1 : 1));
      expect(listed).toEqual([generated, updated]);
      expect(second.cursor).toBeUndefined();
      await expect(apis.deleteApi({ apiId: "payments" })).rejects.toThrow("has keys");
      expect(await apis.deleteApi({ apiId: "payments", force: true })).toEqual({});
      expect(await keys.verifyKey({ key })).toMatchObject({ code: "NOT_FOUND" });
      await apis.deleteApi({ apiId: generated.apiId });
    });
  });

  it("reads and lists APIs by GET, and removes what an update says null to", async () => {
    const { baseUrl, rootKey } = server();
    const { apis } = latchkeyOf("sdk", baseUrl, rootKey);
    await apis.createApi({ apiId: "a b/ü", name: "n", defaults });
    const get = async (path: string): Promise<object> =>
      (await fetch(baseUrl + path, { headers: { authorization: `Bearer ${rootKey}` } })).json() as Promise<object>;
    const api = await get(`/v1/apis.getApi?apiId=${encodeURIComponent("a b/ü")}`);
    expect(api).toMatchObject({ apiId: "a b/ü", name: "n", defaults: storedDefaults });
    expect(await get("/v1/apis.listApis?limit=1")).toEqual({ apis: [api] });
    expect(await get("/v1/apis.getApi?apiId=x")).toMatchObject({ error: { code: "NOT_FOUND" } });
    const { name: _, defaults: __, ...bare } = api as Record<string, unknown>;
    const removed = await apis.updateApi({ apiId: "a b/ü", name: null, defaults: null });
    expect(removed).toEqual({ ...bare, version: 2, updatedAt: expect.any(Number) });
    await apis.deleteApi({ apiId: "a b/ü" });
  });

  it.each(workerCounts)(
    "with explicit APIs and %i workers, neither a key nor an import creates its API",
    async (workers) => {
      const settings = { ...(await engine.settings()), apis: "explicit", workers } as const;
      const { baseUrl, rootKey } = await startTestServer({ settings });
      const { apis, keys } = latchkeyOf("sdk", baseUrl, rootKey);
      const refused = { status: 404, message: expect.stringContaining("create it first with apis.createApi") };
      await expect(keys.createKey({ apiId: "api" })).rejects.toMatchObject(refused);
      await expect(keys.createKey({ apiId: "api", useDefaults: false })).rejects.toMatchObject(refused);
      const old = { apiId: "api", keys: [{ digest: sha256("an old key"), remaining: 1 }] };
      await expect(keys.importKeys(old)).rejects.toMatchObject(refused);
      expect(await apis.listApis({})).toEqual({ apis: [] });
      await apis.createApi({ apiId: "api" });
      const { key } = await keys.createKey({ apiId: "api", remaining: 1 });
      expect(await keys.importKeys(old)).toEqual({ results: [{ keyId: expect.any(String) }] });
      for (const each of [key, "an old key"]) {
        expect(await keys.verifyKey({ key: each })).toMatchObject({ valid: true, remaining: 0 });
      }
    },
  );

  it("a repeated creation of an API answers it again, and another request under its key is a conflict", async () => {
    const { baseUrl, rootKey } = server();
    const { apis } = latchkeyOf("sdk", baseUrl, rootKey);
    const options = { idempotencyKey: "one" };
    const made = await apis.createApi({ name: "n" }, options);
    expect(await apis.createApi({ name: "n" }, options)).toEqual(made);
    await expect(apis.createApi({ name: "m" }, options)).rejects.toMatchObject({ status: 409 });
    expect((await apis.listApis({})).apis).toEqual([made]);
  });

  describe.each(workerCounts)("with %i workers", (workers) => {
    it("an API is deleted when it has no keys, or with them by force, and is then made anew by a key", async () => {
      const { baseUrl, rootKey } = await startTestServer({ settings: { ...(await engine.settings()), workers } });
      const { apis, keys } = latchkeyOf("sdk", baseUrl, rootKey);
      await apis.createApi({ apiId: "empty" });
      expect(await apis.deleteApi({ apiId: "empty" })).toEqual({});
      await expect(apis.getApi({ apiId: "empty" })).rejects.toMatchObject({ status: 404 });

      await apis.createApi({ apiId: "api", name: "old" });
      const made = await Promise.all(Array.from({ length: 5 }, () => keys.createKey({ apiId: "api", remaining: 9 })));
      const other = await keys.createKey({ apiId: "other", remaining: 9 });
      for (const { key } of [...made, other]) expect(await keys.verifyKey({ key })).toMatchObject({ valid: true });
      const refused = { status: 409, message: expect.stringContaining("has keys") };
      await expect(apis.deleteApi({ apiId: "api" })).rejects.toMatchObject(refused);
      expect(await apis.deleteApi({ apiId: "api", force: true })).toEqual({});
      await vi.waitFor(async () => {
        for (const { key } of made) expect(await keys.verifyKey({ key })).toMatchObject({ code: "NOT_FOUND" });
      });
      expect(await keys.verifyKey({ key: other.key })).toMatchObject({ valid: true, remaining: 7 });
      await expect(apis.deleteApi({ apiId: "api", force: true })).rejects.toMatchObject({ status: 404 });

      await keys.createKey({ apiId: "api" });
      const { name, version } = await apis.getApi({ apiId: "api" });
      expect([name, version]).toEqual([undefined, 1]);
    });
  });
});
