import type { KeyStore } from "../../../src/store/key-store.ts";

const stallEvery = 300;
const stallMs = 300;
const lieEvery = 100;
const keptBytes = 50_000;

/** A store with the faults that the harness is there to find: it stalls the event loop, keeps memory and tells wrong. */
export function breakKeyStore(keys: KeyStore): KeyStore {
  const kept: Buffer[] = [];
  let lookups = 0;
  return {
    ...keys,
    async findByDigest(digest) {
      lookups++;
      const key = await keys.findByDigest(digest);
      if (key === undefined) kept.push(Buffer.alloc(keptBytes, lookups));
      const stalledUntilMs = performance.now() + (lookups % stallEvery === 0 ? stallMs : 0);
      while (performance.now() < stalledUntilMs);
      return lookups % lieEvery === 0 ? undefined : key;
    },
  };
}
