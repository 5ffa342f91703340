import { describe, expect, it, onTestFinished } from "vitest";
import { unlimitedRootKey } from "../../src/domain/root-key.ts";
import { RootKeyRefused } from "../../src/domain/root-key-refused.ts";
import { Secret } from "../../src/domain/secret.ts";
import { Unavailable } from "../../src/domain/unavailable.ts";
import { remoteRootAccess } from "../../src/threads/remote-main-thread.ts";
import { sampleKey } from "../contract/sample-keys.ts";
import { connectThreads } from "../support/connect-threads.ts";
import { createKey, deleteKey, done, findKeptAnswer } from "../support/manage.ts";
import { sampleRootKey as rootKey, sampleRootAccess } from "../support/sample-root-access.ts";
import { TestClock } from "../support/test-clock.ts";

const clock = new TestClock();

/** The main thread's access, as a serving thread uses it. */
async function setUp() {
  const { access: rootAccess, ...rest } = await sampleRootAccess(clock);
  const { serving, close } = connectThreads({ rootAccess });
  onTestFinished(close);
  return { ...rest, access: remoteRootAccess(serving) };
}

describe("root access of a serving thread", () => {
  it("asks the main thread what a root key allows", async () => {
    const { access, root } = await setUp();
    expect(await access.check(rootKey)).toEqual(unlimitedRootKey("root_sample"));
    expect(await access.check(new Secret("another"))).toBeUndefined();
    root.valid = undefined;
    await expect(access.check(rootKey)).rejects.toThrow(Unavailable);
  });

  it("manages keys in the main thread with the root key that was presented", async () => {
    const { access, key, store } = await setUp();
    const keys = access.manage(rootKey);
    expect(await createKey(keys, sampleKey(clock, { id: "key_new", secretDigest: "new" }))).toEqual(done);
    expect(await findKeptAnswer(keys, "lookup", clock.nowMs())).toBeUndefined();
    expect(await deleteKey(keys, key.id)).toEqual([key.secretDigest]);
    expect(await deleteKey(keys, key.id)).toBeUndefined();
    expect(await store.keys.findByDigest("new")).toBeDefined();
  });

  it("is refused by the main thread once the root key is retired, and nothing is changed", async () => {
    const { access, key, root, store } = await setUp();
    expect(await access.check(rootKey)).toBeDefined();
    const keys = access.manage(rootKey);
    root.valid = [];
    const refused = [
      createKey(keys, sampleKey(clock, { id: "key_new", secretDigest: "new" })),
      findKeptAnswer(keys, "lookup", clock.nowMs()),
      deleteKey(keys, key.id),
    ];
    for (const call of refused) await expect(call).rejects.toThrow(RootKeyRefused);
    expect(await store.keys.findByDigest(key.secretDigest)).toBeDefined();
    expect(await store.keys.findByDigest("new")).toBeUndefined();
  });

  it("cannot decide while the main thread cannot", async () => {
    const { access, key, root } = await setUp();
    root.valid = undefined;
    await expect(deleteKey(access.manage(rootKey), key.id)).rejects.toThrow(Unavailable);
  });
});
