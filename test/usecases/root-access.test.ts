import { describe, expect, it } from "vitest";
import { unlimitedRootKey } from "../../src/domain/root-key.ts";
import { RootKeyRefused } from "../../src/domain/root-key-refused.ts";
import { Secret } from "../../src/domain/secret.ts";
import { Unavailable } from "../../src/domain/unavailable.ts";
import type { Management } from "../../src/store/management.ts";
import { sampleKey } from "../contract/sample-keys.ts";
import { createKey, deleteKey, done, findKeptAnswer } from "../support/manage.ts";
import { sampleRootKey as rootKey, sampleRootAccess } from "../support/sample-root-access.ts";
import { TestClock } from "../support/test-clock.ts";

const clock = new TestClock();

/** Every way to manage keys. */
const calls: [string, (keys: Management, keyId: string) => Promise<unknown>][] = [
  ["a new key", (keys) => createKey(keys, sampleKey(clock, { id: "key_new", secretDigest: "new" }))],
  ["a question", (keys) => findKeptAnswer(keys, "lookup", clock.nowMs())],
  ["a deletion", (keys, keyId) => deleteKey(keys, keyId)],
];

describe("root access", () => {
  it("knows root keys from other secrets", async () => {
    const { access } = await sampleRootAccess(clock);
    expect([rootKey, new Secret("another")].map((presented) => access.check(presented))).toEqual([
      unlimitedRootKey("root_sample"),
      undefined,
    ]);
  });

  it("passes the calls of a root key on, and their answers back", async () => {
    const { access, key, store } = await sampleRootAccess(clock);
    const keys = access.manage(rootKey);
    expect(await createKey(keys, sampleKey(clock, { id: "key_new", secretDigest: "new" }))).toEqual(done);
    expect(await findKeptAnswer(keys, "lookup", clock.nowMs())).toBeUndefined();
    expect(await deleteKey(keys, key.id)).toEqual([key.secretDigest]);
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
      expect(access.check(rootKey)).toBeDefined();
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
