import { describe, expect, it } from "vitest";
import { sha256 } from "../../src/ambient/crypto.ts";
import { DigestMap } from "../../src/store/digest-map.ts";

const digestOf = (n: number) => sha256(`${n}`);

describe("DigestMap", () => {
  it.each([1, 2, 1023, 2048, 5000, 100_000])("never holds more than %i, and as many once it was full", (sizeMax) => {
    const map = new DigestMap<number>(sizeMax);
    for (let n = 0; n < sizeMax * 2; n++) {
      map.set(digestOf(n), n);
      if (map.size > sizeMax) expect.fail(`holds ${map.size}`);
    }
    expect(map.size).toBe(sizeMax);
    const held = Array.from({ length: sizeMax * 2 }, (_, n) => map.get(digestOf(n)) === n);
    expect(held.filter(Boolean)).toHaveLength(sizeMax);
  });

  it("evicts about the oldest where there are many", () => {
    const map = new DigestMap<number>(100_000);
    for (let n = 0; n < 150_000; n++) map.set(digestOf(n), n);
    const held = (from: number, to: number) => {
      let found = 0;
      for (let n = from; n < to; n++) if (map.get(digestOf(n)) === n) found++;
      return found;
    };
    // Each part is in order by itself; how far the parts differ is chance, and at this size a few thousand at most.
    expect(held(0, 40_000)).toBe(0);
    expect(held(60_000, 150_000)).toBe(90_000);
  });

  it("counts an entry that is set again once, and a deleted one no more", () => {
    const map = new DigestMap<string>(10_000);
    map.set(digestOf(1), "first");
    map.set(digestOf(1), "second");
    map.set(digestOf(2), "other");
    map.delete(digestOf(2));
    map.delete(digestOf(2));
    expect(map.get(digestOf(1))).toBe("second");
    expect(map.size).toBe(1);
    map.clear();
    expect(map.get(digestOf(1))).toBeUndefined();
    expect(map.size).toBe(0);
  });
});
