import { describe, expect, it } from "vitest";
import { clientKinds, latchkeyOf } from "../support/clients.ts";
import { oneEngine } from "../support/engines.ts";
import { startTestServer } from "../support/in-process-server.ts";
import { rawClient } from "../support/raw-client.ts";
import { share } from "./share.ts";

const refused = /there is no such owner that this root key may see.*, and the API requires one \(ownersRequired\)/;

describe.each(oneEngine)("an API that requires owners, on $name", (engine) => {
  const server = share(async () => startTestServer({ settings: await engine.settings() }));

  it.each(clientKinds)("takes only keys of owners that have a record, or of none, over %s", async (kind) => {
    const { baseUrl, rootKey } = server();
    const { apis, keys, owners } = latchkeyOf(kind, baseUrl, rootKey);
    const apiId = `required ${kind}`;
    expect(await apis.createApi({ apiId })).toMatchObject({ ownersRequired: false });
    const before = await keys.createKey({ apiId, ownerId: "unknown" });
    expect(await apis.updateApi({ apiId, ownersRequired: true })).toMatchObject({ ownersRequired: true, version: 2 });
    expect((await keys.verifyKey({ key: before.key })).code, "keys that exist stay").toBe("VALID");

    await owners.createOwner({ ownerId: kind, remaining: 1 });
    await expect(keys.createKey({ apiId, ownerId: `${kind} ` })).rejects.toThrow(refused);
    const { key, keyId } = await keys.createKey({ apiId, ownerId: kind });
    expect(await keys.verifyKey({ key })).toMatchObject({ code: "VALID", owner: { remaining: 0 } });
    expect((await keys.createKey({ apiId })).keyId).toMatch(/^key_/);

    await expect(keys.updateKey({ keyId, ownerId: "unknown" })).rejects.toThrow(refused);
    expect(await keys.updateKey({ keyId, ownerId: kind, name: "other" })).toMatchObject({ name: "other", version: 2 });
    expect(await keys.updateKey({ keyId: before.keyId, name: "n", ownerId: "unknown" })).toMatchObject({ name: "n" });

    const digests = ["aa", "bb"].map((start) => (start + Buffer.from(kind).toString("hex")).padEnd(64, "0"));
    const many = digests.map((digest, i) => ({ digest, ownerId: [kind, "unknown"][i] as string }));
    await expect(keys.importKeys({ apiId, keys: many })).rejects.toThrow("may see (keys[1]), and the API requires one");
    expect((await keys.listKeys({ apiId })).keys, "none of them was stored").toHaveLength(3);
    const { results } = await keys.importKeys({ apiId, keys: many.slice(0, 1) });
    expect(results).toMatchObject([{ keyId: expect.stringMatching(/^key_/) }]);

    await apis.updateApi({ apiId, ownersRequired: false });
    expect((await keys.createKey({ apiId, ownerId: "unknown" })).keyId).toMatch(/^key_/);
  });

  it("does not take an owner that the root key may not see, or that concerns other APIs, for one", async () => {
    const { baseUrl, rootKey } = server();
    const all = rawClient({ baseUrl, rootKey });
    for (const apiId of ["mine", "theirs"]) await all.apis.createApi({ apiId, ownersRequired: true });
    await all.owners.createOwner({ ownerId: "of theirs", apiIds: ["theirs"] });
    await all.owners.createOwner({ ownerId: "of all" });
    await all.owners.createOwner({ ownerId: "of mine", apiIds: ["mine"] });
    const limited = await all.rootKeys.createRootKey({ permissions: ["keys.*"], apiIds: ["mine"] });
    const mine = rawClient({ baseUrl, rootKey: limited.rootKey }).keys;
    const answers = async (ownerId: string) => {
      const create = (client: typeof mine) =>
        client.createKey({ apiId: "mine", ownerId }).then(
          () => 200,
          (e) => e.status,
        );
      return [await create(all.keys), await create(mine)];
    };
    expect(await answers("of mine")).toEqual([200, 200]);
    expect(await answers("of all"), "the limited root key may not see it").toEqual([200, 404]);
    expect(await answers("of theirs"), "it shares nothing with keys of this API").toEqual([404, 404]);
    expect(await answers("unknown")).toEqual([404, 404]);
  });

  it("answers a repeated creation as before, also if the owner was deleted since", async () => {
    const { baseUrl, rootKey } = server();
    const { apis, keys, owners } = rawClient({ baseUrl, rootKey });
    await apis.createApi({ apiId: "repeated", ownersRequired: true });
    await owners.createOwner({ ownerId: "short-lived" });
    const create = () => keys.createKey({ apiId: "repeated", ownerId: "short-lived" }, { idempotencyKey: "once" });
    const created = await create();
    await owners.deleteOwner({ ownerId: "short-lived", keys: "keep" });
    expect(await create()).toEqual(created);
    const another = keys.createKey({ apiId: "repeated", ownerId: "short-lived" }, { idempotencyKey: "another" });
    await expect(another).rejects.toMatchObject({ status: 404, code: "NOT_FOUND" });
  });
});
