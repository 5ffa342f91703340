import { describe, expect, it } from "vitest";
import { clientKinds, clientOf } from "../support/clients.ts";
import { oneEngine } from "../support/engines.ts";
import { startTestServer } from "../support/in-process-server.ts";
import { share } from "./share.ts";

describe.each(oneEngine)("the environment of keys on $name", (engine) => {
  const server = share(async () => startTestServer({ settings: await engine.settings() }));

  it.each(clientKinds)("is told by every verification, read, changed and removed, over %s", async (kind) => {
    const { baseUrl, rootKey } = server();
    const client = clientOf(kind, baseUrl, rootKey);
    const { key, keyId } = await client.createKey({ apiId: kind, environment: "test" });
    const plain = await client.createKey({ apiId: kind });
    const told = async () => [
      (await client.verifyKey({ key })).environment,
      (await client.verifyKey({ key, apiId: "other" })).environment,
      (await client.getKey({ keyId })).environment,
    ];
    expect(await told(), "a refusal of a key of another API tells nothing of it").toEqual(["test", undefined, "test"]);
    expect((await client.verifyKey({ key: plain.key })).environment).toBeUndefined();
    const listed = async (environment: string) =>
      (await client.listKeys({ apiId: kind, environment })).keys.map((found) => found.keyId);
    expect(await listed("test")).toEqual([keyId]);

    expect((await client.updateKey({ keyId, environment: "production" })).environment).toBe("production");
    expect(await told()).toEqual(["production", undefined, "production"]);
    expect([await listed("test"), await listed("production")]).toEqual([[], [keyId]]);
    expect((await client.updateKey({ keyId, name: "other" })).environment, "it stays").toBe("production");
    // Only JSON has null.
    if (kind !== "sdk") return;
    await client.updateKey({ keyId, environment: null });
    expect(await told()).toEqual([undefined, undefined, undefined]);
  });

  it("is imported", async () => {
    const { baseUrl, rootKey } = server();
    const { importKeys, getKey } = clientOf("sdk", baseUrl, rootKey);
    const digest = "ab".repeat(32);
    const { results } = await importKeys({ apiId: "imported", keys: [{ digest, environment: "staging" }] });
    expect((await getKey({ keyId: results[0]?.keyId as string })).environment).toBe("staging");
  });

  it.each(["", "x".repeat(256), 1])("is 1 to 255 characters: %j is a 400", async (environment) => {
    const { baseUrl, rootKey } = server();
    const { createKey } = clientOf("sdk", baseUrl, rootKey);
    await expect(createKey({ apiId: "a", environment: environment as string })).rejects.toMatchObject({ status: 400 });
  });
});
