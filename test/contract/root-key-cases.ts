import { expect } from "vitest";
import { createKey } from "../support/manage.ts";
import type { ContractCase } from "./contract-case.ts";
import { sampleKey } from "./sample-keys.ts";

export const rootKeyCases: readonly ContractCase[] = [
  {
    name: "a new store has no root key",
    async run(store, clock) {
      await createKey(store.management, sampleKey(clock));
      expect(await store.rootKeys.digests()).toEqual([]);
    },
  },
  {
    name: "the first root key is kept and no other after it, not even the same again",
    async run(store, clock) {
      expect(await store.rootKeys.addFirst("first", clock.nowMs())).toBe(true);
      expect(await store.rootKeys.addFirst("second", clock.nowMs())).toBe(false);
      expect(await store.rootKeys.addFirst("first", clock.nowMs())).toBe(false);
      expect(await store.rootKeys.digests()).toEqual(["first"]);
    },
  },
  {
    name: "of several first root keys at once, one is kept and only its caller is told so",
    async run(store, clock) {
      const digests = Array.from({ length: 10 }, (_, i) => `digest ${i}`);
      const kept = await Promise.all(digests.map((digest) => store.rootKeys.addFirst(digest, clock.nowMs())));
      expect(kept.filter(Boolean)).toHaveLength(1);
      expect(await store.rootKeys.digests()).toEqual(digests.filter((_, i) => kept[i]));
    },
  },
  {
    name: "an issued key is no root key, and a root key no issued one",
    async run(store, clock) {
      const key = sampleKey(clock);
      await createKey(store.management, key);
      await store.rootKeys.addFirst("root", clock.nowMs());
      expect(await store.rootKeys.digests()).toEqual(["root"]);
      expect(await store.keys.findByDigest("root")).toBeUndefined();
    },
  },
];
