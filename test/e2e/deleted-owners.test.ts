import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import type { LatchkeyError } from "../../src/sdk/index.ts";
import { latchkeyOf } from "../support/clients.ts";
import { sized } from "../support/deep.ts";
import { oneEngine } from "../support/engines.ts";
import { startTestServer } from "../support/in-process-server.ts";
import { share } from "./share.ts";

const manyKeys = sized(250, 10_000);
const importedTogether = 100;

describe.each(oneEngine)("an owner that keys name, on $name", (engine) => {
  const shared = share(async () => startTestServer({ settings: await engine.settings() }));
  const connect = (rootKey = shared().rootKey) => latchkeyOf("sdk", shared().baseUrl, rootKey);

  async function createWithKeys(ownerId: string) {
    const { owners, keys } = connect();
    await owners.createOwner({ ownerId, remaining: 100, apiIds: ["api"] });
    const made = await Promise.all(["api", "api", "other"].map((apiId) => keys.createKey({ apiId, ownerId })));
    const codes = () => Promise.all(made.map(async ({ key }) => (await keys.verifyKey({ key })).code));
    expect(await codes()).toEqual(["VALID", "VALID", "VALID"]);
    return codes;
  }

  it("is not deleted, and nothing changes", async () => {
    const codes = await createWithKeys("refused");
    const { owners } = connect();
    const before = await owners.getOwner({ ownerId: "refused" });
    const message = expect.stringContaining("2 keys name the owner");
    await expect(owners.deleteOwner({ ownerId: "refused" })).rejects.toMatchObject({ status: 409, message });
    expect(await codes()).toEqual(["VALID", "VALID", "VALID"]);
    // What its two keys have used since.
    expect(await owners.getOwner({ ownerId: "refused" })).toEqual({ ...before, remaining: 96, spent: 4 });
  });

  it.each([
    ["keep", "VALID"],
    ["disable", "DISABLED"],
    ["delete", "NOT_FOUND"],
  ] as const)("is deleted with keys: %s, after which they are %s, those of other APIs VALID", async (keys, code) => {
    const codes = await createWithKeys(keys);
    const { owners } = connect();
    expect(await owners.deleteOwner({ ownerId: keys, keys })).toEqual({});
    expect(await codes()).toEqual([code, code, "VALID"]);
    await expect(owners.getOwner({ ownerId: keys })).rejects.toMatchObject({ status: 404 });
    await expect(owners.deleteOwner({ ownerId: keys, keys })).rejects.toMatchObject({ status: 404 });
  });

  it.each([
    ["disable", "keys.update"],
    ["delete", "keys.delete"],
  ] as const)("needs for keys: %s the permission %s too, and nothing changes without it", async (keys, permission) => {
    const ownerId = `permission ${keys}`;
    const codes = await createWithKeys(ownerId);
    const { rootKeys } = connect();
    const limited = async (...permissions: string[]) =>
      connect((await rootKeys.createRootKey({ permissions })).rootKey);
    const refused = { status: 403, message: expect.stringContaining(permission) };
    await expect((await limited("owners.delete")).owners.deleteOwner({ ownerId, keys })).rejects.toMatchObject(refused);
    expect(await codes()).toEqual(["VALID", "VALID", "VALID"]);
    expect(await (await limited("owners.delete", permission)).owners.deleteOwner({ ownerId, keys })).toEqual({});
  });

  it.each([
    ["disable", "DISABLED"],
    ["delete", "NOT_FOUND"],
  ] as const)(
    `is deleted with ${manyKeys} keys: %s, also for a caller who gives up and asks again`,
    async (keys, code) => {
      const client = connect();
      const ownerId = `many ${keys}`;
      await client.owners.createOwner({ ownerId, apiIds: ["api"] });
      const secrets = Array.from({ length: manyKeys }, (_, i) => `${ownerId} ${i} of an earlier service`);
      for (let i = 0; i < manyKeys; i += importedTogether) {
        const items = secrets.slice(i, i + importedTogether).map((key) => ({ digest: sha256(key), ownerId }));
        await client.keys.importKeys({ apiId: "api", keys: items });
      }
      const gaveUp = client.owners.deleteOwner({ ownerId, keys }, { timeoutMs: 20 });
      const first = await gaveUp.then(
        () => "answered",
        (error: LatchkeyError) => error.code,
      );
      expect(["answered", "TIMEOUT"]).toContain(first);
      const again = client.owners.deleteOwner({ ownerId, keys }, { timeoutMs: 120_000 });
      // The first one may have come to its end meanwhile.
      await again.catch((error: LatchkeyError) => expect(error.status).toBe(404));
      for (const key of secrets.filter((_, i) => i % 50 === 0)) {
        expect((await client.keys.verifyKey({ key })).code).toBe(code);
      }
      expect((await client.keys.listKeys({ ownerId, enabled: true })).keys).toEqual([]);
      await expect(client.owners.getOwner({ ownerId })).rejects.toMatchObject({ status: 404 });
    },
  );

  it("is deleted with its keys by a root key of its APIs alone", async () => {
    const codes = await createWithKeys("within");
    const permissions = ["owners.delete", "keys.delete"];
    const { rootKey } = await connect().rootKeys.createRootKey({ permissions, apiIds: ["api"] });
    expect(await connect(rootKey).owners.deleteOwner({ ownerId: "within", keys: "delete" })).toEqual({});
    expect(await codes()).toEqual(["NOT_FOUND", "NOT_FOUND", "VALID"]);
  });
});

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
