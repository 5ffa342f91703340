import { describe, expect, it } from "vitest";
import { clientKinds, clientOf } from "../support/clients.ts";
import { oneEngine } from "../support/engines.ts";
import { startTestServer } from "../support/in-process-server.ts";
import { rawClient } from "../support/raw-client.ts";
import { share } from "./share.ts";

const lists = { permissions: ["docs.*", "admin"], ipAllow: ["10.0.0.0/8", "::ffff:192.0.2.1", "2001:db8::/32"] };
const none = { permissions: [], ipAllow: [] };

describe.each(oneEngine)("permissions and addresses on $name", (engine) => {
  const start = share(async () => {
    const server = await startTestServer({ settings: await engine.settings() });
    return { ...server, client: rawClient(server).keys };
  });

  it("are kept as they were given, and set, kept and removed by updates, over every protocol", async () => {
    const { baseUrl, rootKey } = start();
    for (const kind of clientKinds) {
      const client = clientOf(kind, baseUrl, rootKey);
      const apiId = `api-${kind}`;
      const { keyId } = await client.createKey({ apiId, ...lists });
      const plain = await client.createKey({ apiId });
      expect(await client.getKey({ keyId })).toMatchObject(lists);
      expect(await client.getKey({ keyId: plain.keyId })).toMatchObject(none);
      expect((await client.listKeys({ apiId })).keys).toMatchObject([none, lists]);
      expect(await client.updateKey({ keyId, name: "name" })).toMatchObject({ name: "name", ...lists });
      expect(await client.updateKey({ keyId, permissions: ["a"] })).toMatchObject({ ...lists, permissions: ["a"] });
      expect(await client.updateKey({ keyId, ipAllow: ["::1"] })).toMatchObject({
        permissions: ["a"],
        ipAllow: ["::1"],
      });
    }
  });

  it("are removed by null", async () => {
    const { client } = start();
    const { keyId, key } = await client.createKey({ apiId: "api", ...lists });
    expect(await client.verifyKey({ key })).toMatchObject({ code: "FORBIDDEN" });
    expect(await client.updateKey({ keyId, ipAllow: null })).toMatchObject({ ...lists, ipAllow: [] });
    expect(await client.verifyKey({ key, permissions: "admin" })).toMatchObject({ code: "VALID" });
    expect(await client.updateKey({ keyId, permissions: null })).toMatchObject(none);
    expect(await client.verifyKey({ key, permissions: "admin" })).toMatchObject({ code: "INSUFFICIENT_PERMISSIONS" });
    for (const empty of [{ ipAllow: [] }, { permissions: [] }]) {
      await expect(client.updateKey({ keyId, ...empty })).rejects.toMatchObject({ status: 400 });
    }
    // Where absent means all addresses, an empty list could mean the opposite.
    await expect(client.createKey({ apiId: "api", ipAllow: [] })).rejects.toMatchObject({ status: 400 });
  });

  it("decide a verification alike over every protocol, and a refusal says why and takes nothing", async () => {
    const { baseUrl, rootKey } = start();
    const ratelimit = { limit: 100, duration: 60_000 };
    for (const kind of clientKinds) {
      const client = clientOf(kind, baseUrl, rootKey);
      const { keyId, key } = await client.createKey({ apiId: "api", remaining: 9, ratelimit, ...lists });
      const verify = (request: object) => client.verifyKey({ key, ...request });
      const standing = { keyId, valid: false, remaining: 9, ratelimit: { limit: 100, remaining: 100 } };
      const ip = "10.1.2.3";

      expect(await verify({ ip: "11.1.2.3", permissions: "x" })).toMatchObject({
        ...standing,
        code: "FORBIDDEN",
        reason: { check: "ip", message: "the key cannot be used from this address" },
      });
      expect(await verify({})).toMatchObject({ ...standing, code: "FORBIDDEN", reason: { check: "ip" } });
      expect(await verify({ ip, permissions: "docs.read AND (users.write OR owner) AND x" })).toMatchObject({
        ...standing,
        code: "INSUFFICIENT_PERMISSIONS",
        reason: {
          check: "permissions",
          missing: "(users.write OR owner) AND x",
          message: "the key lacks (users.write OR owner) AND x",
        },
      });
      expect(await verify({ ip, apiId: "other", permissions: "x" })).toEqual({
        valid: false,
        code: "FORBIDDEN",
        meta: {},
        requestId: expect.any(String),
        ratelimits: [],
        reason: { check: "api", message: "the key belongs to another API" },
      });
      const passing = [ip, "::ffff:10.1.2.3", "192.0.2.1", "2001:db8::1"];
      for (const [index, passingIp] of passing.entries()) {
        const answer = await verify({ ip: passingIp, permissions: "docs.a.b AND admin" });
        expect(answer).toMatchObject({ code: "VALID", remaining: 8 - index });
        expect(answer).not.toHaveProperty("reason");
      }
    }
  });

  it("of imported keys count too, and a repeated creation with others is a conflict", async () => {
    const { client } = start();
    const digest = "ab".repeat(32);
    const { results } = await client.importKeys({ apiId: "api", keys: [{ digest, ...lists }] });
    expect(await client.getKey({ keyId: results[0]?.keyId as string })).toMatchObject(lists);
    const request = { apiId: "api", ...lists };
    const again = { idempotencyKey: "again" };
    const first = await client.createKey(request, again);
    expect(await client.createKey(request, again)).toEqual(first);
    for (const other of [{ permissions: ["admin", "docs.*"] }, { ipAllow: ["10.0.0.0/8"] }]) {
      await expect(client.createKey({ ...request, ...other }, again)).rejects.toMatchObject({ status: 409 });
    }
  });
});
