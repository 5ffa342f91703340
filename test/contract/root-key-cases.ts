import { expect } from "vitest";
import { unlimitedRootKey } from "../../src/domain/root-key.ts";
import type { Store } from "../../src/store/store.ts";
import { createKey } from "../support/manage.ts";
import type { ContractCase } from "./contract-case.ts";
import { sampleKey } from "./sample-keys.ts";

const generated = unlimitedRootKey("root_generated");

/** What is found of these digests. */
function found(store: Store, ...digests: string[]) {
  return Promise.all(digests.map((digest) => store.rootKeys.findByDigest(digest)));
}

export const rootKeyCases: readonly ContractCase[] = [
  {
    name: "a new store has no root key",
    async run(store, clock) {
      const key = sampleKey(clock);
      await createKey(store.management, key);
      expect(await store.rootKeys.hasAny()).toBe(false);
      expect(await found(store, key.secretDigest, "")).toEqual([undefined, undefined]);
    },
  },
  {
    name: "the first root key is kept and no other after it, not even the same again",
    async run(store, clock) {
      const add = (digest: string) => store.rootKeys.addFirst(digest, "lk_root_abcd", clock.nowMs());
      expect(await add("first")).toBe(true);
      expect(await add("second")).toBe(false);
      expect(await add("first")).toBe(false);
      expect(await found(store, "first", "second")).toEqual([generated, undefined]);
      expect(await store.rootKeys.hasAny()).toBe(true);
    },
  },
  {
    name: "of several first root keys at once, one is kept and only its caller is told so",
    async run(store, clock) {
      const digests = Array.from({ length: 10 }, (_, i) => `digest ${i}`);
      const kept = await Promise.all(digests.map((digest) => store.rootKeys.addFirst(digest, "start", clock.nowMs())));
      expect(kept.filter(Boolean)).toHaveLength(1);
      expect(await found(store, ...digests)).toEqual(kept.map((isKept) => (isKept ? generated : undefined)));
    },
  },
  {
    name: "an issued key is no root key, and a root key no issued one",
    async run(store, clock) {
      const key = sampleKey(clock);
      await createKey(store.management, key);
      await store.rootKeys.addFirst("root", "start", clock.nowMs());
      expect(await found(store, "root", key.secretDigest)).toEqual([generated, undefined]);
      expect(await store.keys.findByDigest("root")).toBeUndefined();
    },
  },
];
