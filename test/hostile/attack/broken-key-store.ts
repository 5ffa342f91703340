import type { KeyLookup } from "../../../src/store/key-lookup.ts";

const lieEvery = 50;
const stallEvery = 500;
/** Long enough to stand out on a machine that is busy with other things. */
const stallMs = 2000;
const stallsMax = 3;
const keptBytes = 60_000;
const keptMax = 3000;

/**
 * A store with the faults that the harness is there to find: it tells wrong of a known key now and then, and for unknown ones
 * it keeps memory and stalls the event loop.
 */
export function breakKeyStore(keys: KeyLookup): KeyLookup {
  const kept: Buffer[] = [];
  let found = 0;
  let missed = 0;
  return {
    async findByDigest(digest) {
      const key = await keys.findByDigest(digest);
      if (key !== undefined) return ++found % lieEvery === 0 ? undefined : key;
      missed++;
      if (kept.length < keptMax) kept.push(Buffer.alloc(keptBytes, missed));
      if (missed % stallEvery === 0 && missed <= stallEvery * stallsMax) stall();
      return undefined;
    },
  };
}

function stall(): void {
  const untilMs = performance.now() + stallMs;
  while (performance.now() < untilMs);
}
