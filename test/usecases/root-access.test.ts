import { describe, expect, it } from "vitest";
import { RootKeyRefused } from "../../src/domain/root-key-refused.ts";
import { Secret } from "../../src/domain/secret.ts";
import { Unavailable } from "../../src/domain/unavailable.ts";
import type { KeyManagement } from "../../src/store/key-store.ts";
import { sampleKey } from "../contract/sample-keys.ts";
import { sampleRootKey as rootKey, sampleRootAccess } from "../support/sample-root-access.ts";
import { TestClock } from "../support/test-clock.ts";

const clock = new TestClock();

/** Every way to manage keys. */
const calls: [keyof KeyManagement, (keys: KeyManagement, keyId: string) => Promise<unknown>][] = [
  ["create", (keys) => keys.create(sampleKey(clock, { id: "key_new", secretDigest: "new" }))],
  ["findKeptAnswer", (keys) => keys.findKeptAnswer("lookup", clock.nowMs())],
  ["mutate", (keys, keyId) => keys.mutate(keyId, { kind: "delete" })],
];

describe("root access", () => {
  it("knows root keys from other secrets", async () => {
    const { access } = await sampleRootAccess(clock);
    expect([rootKey, new Secret("another")].map((presented) => access.isRootKey(presented))).toEqual([true, false]);
  });

  it("passes the calls of a root key on, and their answers back", async () => {
    const { access, key, store } = await sampleRootAccess(clock);
    const keys = access.manage(rootKey);
    expect(await keys.create(sampleKey(clock, { id: "key_new", secretDigest: "new" }))).toEqual({ outcome: "created" });
    expect(await keys.findKeptAnswer("lookup", clock.nowMs())).toBeUndefined();
    expect(await keys.mutate(key.id, { kind: "delete" })).toEqual([key.secretDigest]);
    expect(await store.keys.findByDigest("new")).toBeDefined();
  });

  describe.each(calls)("%s", (_, call) => {
    it("is refused without a root key, and nothing is changed", async () => {
      const { access, key, store } = await sampleRootAccess(clock);
      await expect(call(access.manage(new Secret("another")), key.id)).rejects.toThrow(RootKeyRefused);
      expect([await store.keys.findByDigest(key.secretDigest), await store.keys.findByDigest("new")]).toEqual([
        expect.objectContaining({ id: key.id }),
        undefined,
      ]);
    });

    it("is refused once the root key is retired, also to a caller that was let in before", async () => {
      const { access, key, root, store } = await sampleRootAccess(clock);
      expect(access.isRootKey(rootKey)).toBe(true);
      const keys = access.manage(rootKey);
      root.valid = ["its successor"];
      await expect(call(keys, key.id)).rejects.toThrow(RootKeyRefused);
      expect(await store.keys.findByDigest(key.secretDigest)).toBeDefined();
    });

    it("is an outage, not a refusal, while the root keys are not known", async () => {
      const { access, key, root } = await sampleRootAccess(clock);
      root.valid = undefined;
      await expect(call(access.manage(rootKey), key.id)).rejects.toThrow(Unavailable);
    });
  });
});
