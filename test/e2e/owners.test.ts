import { describe, expect, it } from "vitest";
import { clientKinds, latchkeyOf } from "../support/clients.ts";
import { oneEngine } from "../support/engines.ts";
import { startTestServer } from "../support/in-process-server.ts";
import { testRootKey } from "../support/test-root-key.ts";

const minute = { name: "minute", limit: 5, duration: 60_000 };
const full = {
  meta: { plan: "pro" },
  enabled: false,
  apiIds: ["b", "a"],
  remaining: 3,
  refill: { interval: "monthly" as const, amount: 9, carryOver: true },
  ratelimits: [minute, { name: "day", limit: 50, duration: 86_400_000, async: false }],
};
const moments = { createdAt: expect.any(Number), updatedAt: expect.any(Number) };
const storedFull = {
  ...full,
  refill: { ...full.refill, nextRefillAt: expect.any(Number) },
  spent: 0,
  ratelimits: [{ async: true, ...minute }, full.ratelimits[1]],
  ...moments,
};
const plain = { meta: {}, enabled: true, apiIds: [], ratelimits: [], ...moments };

describe.each(oneEngine)("on $name", (engine) => {
  it("owners are created, read, listed, changed and deleted, over every protocol, and read by GET", async () => {
    const { baseUrl, rootKey } = await startTestServer({ settings: await engine.settings() });
    const sdk = latchkeyOf("sdk", baseUrl, rootKey);
    for (const kind of clientKinds) {
      const { owners, audit } = latchkeyOf(kind, baseUrl, rootKey);
      const isBinary = !["sdk", "connect-json"].includes(kind);
      const [ownerId, other] = [`${kind} ü 😀`, `${kind} other`];
      const created = await owners.createOwner({ ownerId, ...full });
      expect(created).toEqual({ ownerId, ...storedFull, version: 1 });
      expect(await owners.getOwner({ ownerId })).toEqual(created);
      await expect(owners.createOwner({ ownerId })).rejects.toThrow("exists already");
      await expect(owners.getOwner({ ownerId: other })).rejects.toThrow("there is no such owner");
      expect(await owners.createOwner({ ownerId: other })).toEqual({ ownerId: other, ...plain, version: 1 });

      const first = await owners.listOwners({ limit: 1 });
      const second = await owners.listOwners({ limit: 1, cursor: first.cursor as string });
      const listed = [...first.owners, ...second.owners].map((owner) => owner.ownerId).sort();
      expect(listed).toEqual([other, ownerId].sort());

      // What is absent stays, a value is set.
      const changes = { enabled: true, ratelimits: [minute] };
      const updated = { ...created, ...changes, ratelimits: [{ async: true, ...minute }], ...moments, version: 2 };
      expect(await owners.updateOwner({ ownerId, ifVersion: 1, ...changes })).toEqual(updated);
      await expect(owners.updateOwner({ ownerId, ifVersion: 1, enabled: false })).rejects.toThrow("not ifVersion");
      expect(await owners.updateRemaining({ ownerId, op: "increment", value: 4 })).toEqual({ remaining: 7 });
      await expect(owners.updateRemaining({ ownerId, op: "decrement", value: 8 })).rejects.toThrow("below 0");
      expect(await owners.getOwner({ ownerId })).toEqual({ ...updated, remaining: 7, version: 3 });

      // What is named without a value is removed: by null, which messages of this client cannot hold, in binary by a mask.
      const remover = kind === "connect-json" ? sdk.owners : owners;
      const none = isBinary
        ? { updateMask: "meta,apiIds,refill,ratelimits" }
        : { meta: null, apiIds: null, refill: null, ratelimits: null };
      const bare = { ownerId, ...plain, remaining: 7, spent: 0, version: 4 };
      expect(await remover.updateOwner({ ownerId, ...none } as { ownerId: string })).toEqual(bare);
      const noValue = isBinary ? { updateMask: "value" } : { value: null };
      expect(await remover.updateRemaining({ ownerId, op: "set", ...noValue })).toEqual({});
      await expect(owners.updateRemaining({ ownerId, op: "increment", value: 1 })).rejects.toThrow("has no counter");
      const { remaining: _, spent: __, ...without } = bare;
      expect(await owners.getOwner({ ownerId })).toEqual({ ...without, version: 5 });

      expect(await owners.deleteOwner({ ownerId })).toEqual({});
      await expect(owners.deleteOwner({ ownerId })).rejects.toThrow("there is no such owner");
      await owners.deleteOwner({ ownerId: other });
      const { events } = await audit.listEvents({ targetId: ownerId });
      const told = events.toSorted((a, b) => (a.version ?? 0) - (b.version ?? 0));
      expect(told.map(({ method, fields, version }) => [method, fields, version])).toEqual([
        ["owners.createOwner", [], 1],
        ["owners.updateOwner", ["enabled", "ratelimits"], 2],
        ["owners.updateRemaining", ["remaining"], 3],
        ["owners.updateOwner", ["meta", "apiIds", "refill", "ratelimits"], 4],
        ["owners.updateRemaining", ["remaining"], 5],
        ["owners.deleteOwner", [], 6],
      ]);
    }

    const owner = await sdk.owners.createOwner({ ownerId: "a b/ü", ...full });
    const get = async (path: string): Promise<object> =>
      (await fetch(baseUrl + path, { headers: { authorization: `Bearer ${rootKey}` } })).json() as Promise<object>;
    expect(await get(`/v1/owners.getOwner?ownerId=${encodeURIComponent("a b/ü")}`)).toEqual(owner);
    expect(await get("/v1/owners.listOwners?limit=1")).toEqual({ owners: [owner] });
    expect(await get("/v1/owners.getOwner?ownerId=x")).toMatchObject({ error: { code: "NOT_FOUND" } });
  });

  it("a repeated request changes nothing again, and keys and owners have idempotency keys of their own", async () => {
    const { baseUrl, rootKey } = await startTestServer({ settings: await engine.settings() });
    const { owners, keys } = latchkeyOf("sdk", baseUrl, rootKey);
    const options = { idempotencyKey: "one" };
    const created = await owners.createOwner({ ownerId: "o", remaining: 5 }, options);
    expect(await owners.createOwner({ ownerId: "o", remaining: 5 }, options)).toEqual(created);
    await expect(owners.createOwner({ ownerId: "p" }, options)).rejects.toMatchObject({ status: 409 });
    const { keyId } = await keys.createKey({ apiId: "api", remaining: 5 });
    const add = { op: "increment", value: 1 } as const;
    for (let times = 0; times < 2; times++) {
      expect(await owners.updateRemaining({ ownerId: "o", ...add }, options)).toEqual({ remaining: 6 });
      expect(await keys.updateRemaining({ keyId, ...add }, options)).toEqual({ remaining: 6 });
      expect(await owners.updateOwner({ ownerId: "o", enabled: false }, options)).toMatchObject({ version: 3 });
    }
    for (let times = 0; times < 2; times++) expect(await owners.deleteOwner({ ownerId: "o" }, options)).toEqual({});
  });

  it("a root key that is limited to APIs manages the owners of those, sees no others, and not their events", async () => {
    const { baseUrl } = await startTestServer({ settings: await engine.settings() });
    const { owners, rootKeys } = latchkeyOf("sdk", baseUrl, testRootKey);
    const permissions = ["owners.*", "audit.read"];
    const { rootKey } = await rootKeys.createRootKey({ permissions, apiIds: ["a", "b"] });
    const limited = latchkeyOf("sdk", baseUrl, rootKey);
    const foreign: [string, string[]?][] = [["all"], ["partly", ["a", "z"]], ["other", ["z"]]];
    for (const [ownerId, apiIds] of foreign) {
      await owners.createOwner({ ownerId, remaining: 5, ...(apiIds && { apiIds }) });
    }
    const mine = await limited.owners.createOwner({ ownerId: "mine", apiIds: ["b", "a"], remaining: 5 });
    expect(await limited.owners.listOwners({})).toEqual({ owners: [mine] });
    const { events } = await limited.audit.listEvents({});
    expect(events.map(({ targetId }) => targetId)).toEqual(["mine"]);

    const forbidden = { status: 403, code: "FORBIDDEN" };
    await expect(limited.owners.createOwner({ ownerId: "new" })).rejects.toMatchObject(forbidden);
    await expect(limited.owners.createOwner({ ownerId: "new", apiIds: ["a", "z"] })).rejects.toMatchObject(forbidden);
    for (const [ownerId] of [...foreign, ["unknown"] as [string]]) {
      const missing = { status: 404, message: "there is no such owner" };
      await expect(limited.owners.getOwner({ ownerId })).rejects.toMatchObject(missing);
      await expect(limited.owners.updateOwner({ ownerId, apiIds: ["a"] })).rejects.toMatchObject(missing);
      await expect(limited.owners.updateRemaining({ ownerId, op: "set", value: 1 })).rejects.toMatchObject(missing);
      await expect(limited.owners.deleteOwner({ ownerId })).rejects.toMatchObject(missing);
      await expect(limited.owners.updateOwner({ ownerId, apiIds: null })).rejects.toMatchObject(forbidden);
    }
    for (const [ownerId] of foreign) expect(await owners.getOwner({ ownerId })).toMatchObject({ version: 1 });

    // Others change it meanwhile; who has not named a version need not care.
    const add = () => limited.owners.updateRemaining({ ownerId: "mine", op: "increment", value: 1 });
    const sums = (await Promise.all([add(), add(), add(), add()])).map(({ remaining }) => remaining);
    expect(sums.toSorted()).toEqual([6, 7, 8, 9]);
    expect(await limited.owners.updateOwner({ ownerId: "mine", apiIds: ["b"] })).toMatchObject({ apiIds: ["b"] });
    expect(await limited.owners.deleteOwner({ ownerId: "mine" })).toEqual({});
  });

  it("a root key that is limited to an API can give an owner of all APIs a key and spend its balance, not one with other apiIds", async () => {
    const { baseUrl } = await startTestServer({ settings: await engine.settings() });
    const { owners, rootKeys } = latchkeyOf("sdk", baseUrl, testRootKey);
    const permissions = ["keys.create", "owners.*"];
    const { rootKey } = await rootKeys.createRootKey({ permissions, apiIds: ["theirs"] });
    const limited = latchkeyOf("sdk", baseUrl, rootKey);
    const spendFrom = async (ownerId: string) => {
      const { key } = await limited.keys.createKey({ apiId: "theirs", ownerId });
      return (await limited.keys.verifyKey({ key, remaining: { cost: 7 } })).owner?.remaining;
    };
    await owners.createOwner({ ownerId: "shared", remaining: 10 });
    await owners.createOwner({ ownerId: "within", remaining: 10, apiIds: ["ours"] });
    expect([await spendFrom("shared"), await spendFrom("within")]).toEqual([3, undefined]);
    expect((await owners.getOwner({ ownerId: "shared" })).remaining).toBe(3);
    expect((await owners.getOwner({ ownerId: "within" })).remaining).toBe(10);
    await expect(limited.owners.getOwner({ ownerId: "shared" })).rejects.toThrow("there is no such owner");
  });
});
