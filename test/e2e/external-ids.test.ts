import { create } from "@bufbuild/protobuf";
import { FieldMaskSchema } from "@bufbuild/protobuf/wkt";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { describe, expect, it } from "vitest";
import { KeysService } from "../../gen/latchkey/v1/keys_pb.js";
import { clientKinds, latchkeyOf } from "../support/clients.ts";
import { oneEngine } from "../support/engines.ts";
import { startTestServer } from "../support/in-process-server.ts";
import { share } from "./share.ts";

describe.each(oneEngine)("externalId, another name of ownerId, on $name", (engine) => {
  const server = share(async () => startTestServer({ settings: await engine.settings() }));

  it.each(clientKinds)(
    "is taken by every request that takes an owner, and answers have ownerId, over %s",
    async (kind) => {
      const { baseUrl, rootKey } = server();
      const { keys, owners } = latchkeyOf(kind, baseUrl, rootKey);
      const [externalId, other] = [`acme ${kind}`, `other ${kind}`];
      const made = await owners.createOwner({ externalId, remaining: 5 });
      expect(made).toMatchObject({ ownerId: externalId, remaining: 5 });
      expect(made).not.toHaveProperty("externalId");
      expect(await owners.getOwner({ externalId })).toMatchObject({ ownerId: externalId });
      expect(await owners.updateOwner({ externalId, enabled: true })).toMatchObject({ version: 2 });
      expect(await owners.updateRemaining({ externalId, op: "set", value: 9 })).toMatchObject({ remaining: 9 });

      const { key, keyId } = await keys.createKey({ apiId: kind, externalId });
      expect(await keys.verifyKey({ key })).toMatchObject({ ownerId: externalId, owner: { remaining: 8 } });
      const digest = Buffer.from(kind.padEnd(32, "."), "latin1").toString("hex");
      const { results } = await keys.importKeys({ apiId: kind, keys: [{ digest, externalId }] });
      expect((await keys.getKey({ keyId: results[0]?.keyId as string })).ownerId).toBe(externalId);
      expect((await keys.listKeys({ externalId })).keys).toHaveLength(2);
      expect(await keys.updateKey({ keyId, externalId: other })).toMatchObject({ ownerId: other });
      expect((await keys.listKeys({ externalId })).keys).toHaveLength(1);
      await owners.deleteOwner({ externalId, keys: "keep" });
      await expect(owners.getOwner({ ownerId: externalId })).rejects.toThrow("there is no such owner");
    },
  );

  it("may be sent beside ownerId with the same value; with another one it is a 400, and nothing has changed", async () => {
    const { baseUrl, rootKey } = server();
    const { keys, owners } = latchkeyOf("sdk", baseUrl, rootKey);
    const { keyId } = await keys.createKey({ apiId: "both", ownerId: "a", externalId: "a" });
    const message = "externalId: must be the same as ownerId, of which it is another name";
    const differing = [
      () => keys.createKey({ apiId: "both", ownerId: "a", externalId: "b" }),
      () => keys.updateKey({ keyId, ownerId: "b", externalId: "c" }),
      () => keys.updateKey({ keyId, ownerId: null, externalId: "b" }),
      () => keys.updateKey({ keyId, ownerId: "b", externalId: null }),
      () => keys.listKeys({ ownerId: "a", externalId: "b" }),
      () => owners.createOwner({ ownerId: "a", externalId: "b" }),
      () => owners.deleteOwner({ ownerId: "a", externalId: "b" }),
      () => owners.deleteOwner({ ownerId: "", externalId: "b" }),
    ];
    for (const call of differing) await expect(call()).rejects.toMatchObject({ status: 400, message });
    const many = [{ digest: "aa".repeat(32) }, { digest: "bb".repeat(32), ownerId: "a", externalId: "b" }];
    await expect(keys.importKeys({ apiId: "both", keys: many })).rejects.toMatchObject({
      status: 400,
      violations: [{ path: "keys[1].externalId" }],
    });
    expect((await keys.listKeys({ apiId: "both" })).keys).toMatchObject([{ keyId, ownerId: "a", version: 1 }]);
    await keys.updateKey({ keyId, ownerId: null, externalId: null });
    expect((await keys.getKey({ keyId })).ownerId).toBeUndefined();
  });

  it("is removed by null, by a mask, and read from a query; what is wrong with it has its name", async () => {
    const { baseUrl, rootKey } = server();
    const { keys, owners } = latchkeyOf("sdk", baseUrl, rootKey);
    const { keyId } = await keys.createKey({ apiId: "removed", ownerId: "a" });
    await keys.updateKey({ keyId, externalId: null });
    expect((await keys.getKey({ keyId })).ownerId).toBeUndefined();

    await keys.updateKey({ keyId, externalId: "a" });
    const grpc = createClient(KeysService, createGrpcTransport({ baseUrl }));
    const headers = { authorization: `Bearer ${rootKey}` };
    const updateMask = create(FieldMaskSchema, { paths: ["external_id"] });
    expect((await grpc.updateKey({ keyId, updateMask }, { headers })).ownerId).toBeUndefined();
    // The mask may have either name, whichever the value comes under.
    for (const [named, value] of [
      ["owner_id", { externalId: "b" }],
      ["external_id", { ownerId: "c" }],
    ] as const) {
      const mask = create(FieldMaskSchema, { paths: [named] });
      const set = await grpc.updateKey({ keyId, ...value, updateMask: mask }, { headers });
      expect(set.ownerId, named).toBe(Object.values(value)[0]);
    }
    const both = create(FieldMaskSchema, { paths: ["owner_id", "external_id"] });
    const differing = [
      { ownerId: "d", externalId: "e", updateMask },
      { ownerId: "d", updateMask: both },
    ];
    for (const request of differing) {
      await expect(grpc.updateKey({ keyId, ...request }, { headers })).rejects.toThrow("externalId: must be the same");
    }
    expect((await keys.getKey({ keyId })).ownerId).toBe("c");
    const masked = { keyId, externalId: "f", updateMask: "ownerId" };
    const asJson = { method: "POST", headers: { ...headers, "content-type": "application/json" } };
    const path = `${baseUrl}/latchkey.v1.KeysService/UpdateKey`;
    const answered = await fetch(path, { ...asJson, body: JSON.stringify(masked) });
    expect(await answered.json()).toMatchObject({ ownerId: "f" });

    await owners.createOwner({ ownerId: "by query" });
    const answer = await fetch(`${baseUrl}/v1/owners.getOwner?externalId=by%20query`, { headers });
    expect(await answer.json()).toMatchObject({ ownerId: "by query" });
    for (const externalId of ["", "x".repeat(256)]) {
      await expect(owners.getOwner({ externalId })).rejects.toMatchObject({ violations: [{ path: "externalId" }] });
    }
    await expect(owners.getOwner({})).rejects.toMatchObject({ violations: [{ path: "ownerId" }] });
  });
});
