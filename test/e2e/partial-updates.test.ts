import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { describe, expect, it } from "vitest";
import { KeysService } from "../../gen/latchkey/v1/keys_pb.js";
import { latchkeyOf } from "../support/clients.ts";
import { oneEngine } from "../support/engines.ts";
import { startTestServer } from "../support/in-process-server.ts";
import { share } from "./share.ts";

const strict = { async: false, limit: 10, duration: 60_000 };

describe.each(oneEngine)("an update of a part of a rule, on $name", (engine) => {
  const shared = share(async () => startTestServer({ settings: await engine.settings() }));
  const connect = () => latchkeyOf("sdk", shared().baseUrl, shared().rootKey);

  it("leaves a strict limit strict, and what was used in its window used", async () => {
    const { keys } = connect();
    const { keyId, key } = await keys.createKey({ apiId: "api", ratelimit: strict });
    expect((await keys.verifyKey({ key })).ratelimit).toMatchObject({ limit: 10, remaining: 9 });
    const updated = await keys.updateKey({ keyId, ratelimit: { limit: 100, duration: 60_000 } });
    expect(updated.ratelimit).toEqual({ ...strict, limit: 100 });
    expect((await keys.verifyKey({ key })).ratelimit).toMatchObject({ limit: 100, remaining: 98 });
    expect((await keys.updateKey({ keyId, ratelimit: { async: null } })).ratelimit).toMatchObject({ async: true });
  });

  it("keeps what is absent in a refill and in limits with names, and removes limits that are left out", async () => {
    const { keys } = connect();
    const refill = { interval: "daily", amount: 10, carryOver: true } as const;
    const burst = { name: "burst", ...strict };
    const made = { apiId: "api", remaining: 10, refill, ratelimits: [burst, { ...burst, name: "day" }] };
    const { keyId } = await keys.createKey(made);
    expect((await keys.updateKey({ keyId, refill: { amount: 20 } })).refill).toMatchObject({ ...refill, amount: 20 });
    expect((await keys.updateKey({ keyId, refill: { carryOver: null } })).refill).toMatchObject({ carryOver: false });
    const updated = await keys.updateKey({ keyId, ratelimits: [{ name: "burst", limit: 5 }] });
    expect(updated.ratelimits).toEqual([{ ...burst, limit: 5 }]);
  });

  it("takes back what was read, with what can only be read", async () => {
    const { keys, owners, apis } = connect();
    const refill = { interval: "monthly", amount: 10 } as const;
    const { keyId } = await keys.createKey({
      apiId: "api",
      remaining: 10,
      refill,
      ratelimit: strict,
      ratelimits: [{ name: "burst", ...strict }],
    });
    const key = await keys.getKey({ keyId });
    expect(key.refill?.nextRefillAt).toBeGreaterThan(0);
    const { version: _, updatedAt: __, ...same } = key;
    const { ratelimit, ratelimits } = key;
    expect(await keys.updateKey({ keyId, refill: key.refill, ratelimit, ratelimits })).toMatchObject(same);
    const created = await keys.createKey({ apiId: "api", remaining: 1, refill: key.refill, ratelimit, ratelimits });
    expect(await keys.getKey({ keyId: created.keyId })).toMatchObject({ refill: key.refill, ratelimit, ratelimits });

    const owner = await owners.createOwner({ ownerId: "o", remaining: 1, refill });
    const changed = await owners.updateOwner({ ownerId: "o", refill: owner.refill });
    expect(changed).toMatchObject({ refill: owner.refill });
    const api = await apis.createApi({ apiId: "read", defaults: { remaining: 1, refill, ratelimit: strict } });
    expect(await apis.updateApi({ apiId: "read", defaults: api.defaults })).toMatchObject({ defaults: api.defaults });
  });

  it("refuses what is needed for a rule that is not there, and what no update has", async () => {
    const { keys, owners, apis } = connect();
    const { keyId } = await keys.createKey({ apiId: "api", remaining: 1 });
    const refused = (path: string, message = "") => ({
      status: 400,
      violations: [{ path, message: expect.stringContaining(message) }],
    });
    await expect(keys.updateKey({ keyId, ratelimit: { limit: 1 } })).rejects.toMatchObject(
      refused("ratelimit", "needs limit and duration"),
    );
    await expect(keys.updateKey({ keyId, ratelimits: [{ name: "a", async: false }] })).rejects.toMatchObject(
      refused("ratelimits[0]", "needs limit and duration"),
    );
    await expect(keys.updateKey({ keyId, refill: { amount: 1 } })).rejects.toMatchObject(
      refused("refill", "needs interval and amount"),
    );
    await expect(keys.updateKey({ keyId: "key_none", ratelimit: { limit: 1 } })).rejects.toMatchObject({ status: 404 });
    const { remaining: _, ...rest } = await keys.getKey({ keyId });
    await expect(keys.updateKey({ keyId, remaining: 1 } as never)).rejects.toMatchObject({ status: 400 });
    await expect(keys.updateKey({ keyId, secrets: rest.secrets } as never)).rejects.toMatchObject({ status: 400 });
    expect(await keys.getKey({ keyId })).toMatchObject(rest);

    await owners.createOwner({ ownerId: "bare" });
    await expect(owners.updateOwner({ ownerId: "bare", ratelimits: [{ name: "a" }] })).rejects.toMatchObject(
      refused("ratelimits[0]", "needs limit and duration"),
    );
    await apis.createApi({ apiId: "bare" });
    await expect(apis.updateApi({ apiId: "bare", defaults: { refill: { amount: 1 } } })).rejects.toMatchObject(
      refused("defaults.refill"),
    );
    await expect(apis.updateApi({ apiId: "bare", defaults: {} })).rejects.toMatchObject(
      refused("defaults", "changes nothing"),
    );
  });

  it("changes one default of an API, and null removes one", async () => {
    const { apis } = connect();
    await apis.createApi({ apiId: "d", defaults: { prefix: "p", ratelimit: strict, remaining: 5 } });
    const update = async (defaults: object) => (await apis.updateApi({ apiId: "d", defaults })).defaults;
    expect(await update({ ratelimit: { limit: 1 } })).toEqual({
      prefix: "p",
      ratelimit: { ...strict, limit: 1 },
      remaining: 5,
    });
    expect(await update({ prefix: null, remaining: 6 })).toEqual({ ratelimit: { ...strict, limit: 1 }, remaining: 6 });
  });

  it("over gRPC goes by paths inside messages; a message that the mask names is replaced", async () => {
    const { baseUrl, rootKey } = shared();
    const client = createClient(KeysService, createGrpcTransport({ baseUrl }));
    const headers = { authorization: `Bearer ${rootKey}` };
    const refill = { interval: "daily", amount: 10, carryOver: true };
    const { keyId } = await client.createKey({ apiId: "api", ratelimit: strict, remaining: 1, refill }, { headers });
    const update = (request: object, ...paths: string[]) =>
      client.updateKey({ keyId, ...request, updateMask: { paths } }, { headers });
    const ratelimit = { limit: 7, duration: 1000 };
    expect((await update({ ratelimit }, "ratelimit.limit")).ratelimit).toMatchObject({ ...strict, limit: 7 });
    expect((await update({ ratelimit })).ratelimit).toMatchObject({ async: false, ...ratelimit });
    expect((await update({ ratelimit }, "ratelimit")).ratelimit).toMatchObject({ async: true, ...ratelimit });
    expect((await update({ refill: { amount: 5 } })).refill).toMatchObject({ ...refill, amount: 5 });
    expect((await update({}, "refill.carry_over")).refill).toMatchObject({ amount: 5, carryOver: false });
    expect((await update({}, "ratelimit")).ratelimit).toBeUndefined();
    await expect(update({ ratelimit: { limit: 7 } }, "ratelimit")).rejects.toThrow("ratelimit.duration");
  });
});
