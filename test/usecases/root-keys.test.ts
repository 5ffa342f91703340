import { describe, expect, it } from "vitest";
import { createSystemRandom } from "../../src/ambient/random.ts";
import { Secret } from "../../src/domain/secret.ts";
import { Unavailable } from "../../src/domain/unavailable.ts";
import type { RootKeyStore } from "../../src/store/root-key-store.ts";
import { RootKeys } from "../../src/usecases/root-keys.ts";
import { createMemoryStore } from "../support/memory-store.ts";
import { TestClock } from "../support/test-clock.ts";

async function load(
  store: RootKeyStore,
  options: { configured?: Secret[]; handOver?: (rootKey: Secret) => void } = {},
) {
  const { configured = [], handOver = () => {} } = options;
  const rootKeys = new RootKeys({ configured, store, clock: new TestClock(), random: createSystemRandom() });
  const kept: string[] = [];
  const takenBack: string[] = [];
  const generated = await rootKeys.load((rootKey) => {
    handOver(rootKey);
    return { keep: () => kept.push(rootKey.reveal()), takeBack: () => takenBack.push(rootKey.reveal()) };
  });
  return { rootKeys, generated, kept, takenBack };
}

function newStore(): RootKeyStore {
  return createMemoryStore(new TestClock()).rootKeys;
}

describe("a generated root key", () => {
  it("is handed over before it counts, so that a crash in between loses nothing", async () => {
    const store = newStore();
    const lost = load(store, {
      handOver: () => {
        throw new Error("no space left on the disk");
      },
    });

    await expect(lost).rejects.toThrow("no space left");
    expect(await store.digests()).toEqual([]);
    const handedOver: string[] = [];
    const { generated, kept, takenBack } = await load(store, {
      handOver: (rootKey) => handedOver.push(rootKey.reveal()),
    });
    expect(handedOver).toEqual([generated?.reveal()]);
    expect(kept).toEqual(handedOver);
    expect(takenBack).toEqual([]);
  });

  it("is shown by the start that made it only, and counts at every later one", async () => {
    const store = newStore();
    const { generated } = await load(store);
    const later = await load(store);

    expect(generated?.reveal()).toMatch(/^lk_root_[0-9A-Za-z]{49}$/);
    expect(later.generated).toBeUndefined();
    expect(later.rootKeys.has(generated as Secret)).toBe(true);
    expect(later.rootKeys.has(new Secret(`${generated?.reveal()}x`))).toBe(false);
  });

  it("is one, however many start at once: the others take theirs back", async () => {
    const store = newStore();
    const starts = await Promise.all(Array.from({ length: 5 }, () => load(store)));
    const shown = starts.flatMap(({ generated }) => generated ?? []);

    expect(shown).toHaveLength(1);
    expect(new Set(starts.flatMap(({ takenBack }) => takenBack))).toHaveLength(4);
    for (const { rootKeys } of starts) expect(rootKeys.has(shown[0] as Secret)).toBe(true);
  });

  it("does not count beside configured ones, which are not stored", async () => {
    const store = newStore();
    const { generated } = await load(store);
    const configured = [new Secret("one"), new Secret("two")];
    const digests = await store.digests();
    const { rootKeys } = await load(store, { configured });

    expect([...configured, generated as Secret].map((key) => rootKeys.has(key))).toEqual([true, true, false]);
    expect(await store.digests()).toEqual(digests);
  });

  it("makes every answer Unavailable until it is known; configured ones are known at once", () => {
    const deps = { store: newStore(), clock: new TestClock(), random: createSystemRandom() };
    expect(() => new RootKeys({ ...deps, configured: [] }).has(new Secret("x"))).toThrow(Unavailable);
    expect(new RootKeys({ ...deps, configured: [new Secret("x")] }).has(new Secret("x"))).toBe(true);
  });
});
