import { describe, expect, it } from "vitest";
import { sha256 } from "../../src/ambient/crypto.ts";
import { createSystemRandom } from "../../src/ambient/random.ts";
import { Secret } from "../../src/domain/secret.ts";
import { Unavailable } from "../../src/domain/unavailable.ts";
import type { RootKeyStore } from "../../src/store/root-key-store.ts";
import { RootKeys } from "../../src/usecases/root-keys.ts";
import { TestClock } from "../support/test-clock.ts";
import { inTurn } from "./fakes.ts";

const clock = new TestClock();
const random = createSystemRandom();
const away = new Unavailable("away");
const [one, two] = [new Secret("one"), new Secret("two")];

/** Loads the root keys, and records the steps with a generated one, in order. */
async function load(
  store: RootKeyStore,
  options: { configured?: Secret[]; handOver?: (rootKey: Secret) => void; did?: string[] } = {},
) {
  const { configured = [], handOver = () => {}, did = [] } = options;
  const rootKeys = new RootKeys({ configured, store, clock, random });
  const handedOver: string[] = [];
  const generated = await rootKeys.load((rootKey) => {
    did.push("hand over");
    handedOver.push(rootKey.reveal());
    handOver(rootKey);
    return { commit: () => void did.push("keep"), rollback: () => void did.push("take back") };
  });
  return { rootKeys, generated, handedOver, did };
}

/** A store that keeps the first digest. */
function newStore(): RootKeyStore & { readonly kept: readonly string[] } {
  const kept: string[] = [];
  return {
    kept,
    digests: async () => [...kept],
    addFirst: async (digest) => kept.length === 0 && kept.push(digest) > 0,
  };
}

/** A store with these answers. It records the calls. */
function scripted(did: string[], script: { digests?: (string[] | Error)[]; first?: boolean | Error }): RootKeyStore {
  const digests = inTurn("digests", script.digests);
  const first = inTurn("first digests", [script.first ?? true]);
  return {
    async digests() {
      did.push("read");
      return digests();
    },
    async addFirst(_digest, nowMs) {
      did.push(`add first at ${nowMs - clock.nowMs()}`);
      return first();
    },
  };
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
    expect(store.kept).toEqual([]);
    const { generated, handedOver, did } = await load(store);
    expect(handedOver).toEqual([generated?.reveal()]);
    expect(did).toEqual(["hand over", "keep"]);
  });

  it("is shown by the start that made it only, and counts at every later one", async () => {
    const store = newStore();
    const { generated, rootKeys } = await load(store);
    const later = await load(store);

    expect(generated?.reveal()).toMatch(/^lk_root_[0-9A-Za-z]{49}$/);
    expect(later.generated).toBeUndefined();
    expect(later.did).toEqual([]);
    for (const known of [rootKeys, later.rootKeys]) {
      expect(known.has(generated as Secret)).toBe(true);
      expect(known.has(new Secret(`${generated?.reveal()}x`))).toBe(false);
    }
  });

  it("is one, with any number of starts at once: the others take back the ones they made", async () => {
    const store = newStore();
    const starts = await Promise.all(Array.from({ length: 5 }, () => load(store)));
    const shown = starts.flatMap(({ generated }) => generated ?? []);
    const takenBack = starts.filter(({ did }) => did.includes("take back"));

    expect(shown).toHaveLength(1);
    expect(new Set(takenBack.flatMap(({ handedOver }) => handedOver)).size).toBe(4);
    for (const { rootKeys } of starts) expect(rootKeys.has(shown[0] as Secret)).toBe(true);
  });

  it("does not count beside configured ones, which are not stored", async () => {
    const store = newStore();
    const { generated } = await load(store);
    const { rootKeys, did } = await load(store, { configured: [one, two] });

    expect([one, two, generated as Secret].map((key) => rootKeys.has(key))).toEqual([true, true, false]);
    expect(store.kept).toHaveLength(1);
    expect(did).toEqual([]);
  });
});

describe("loading the root keys", () => {
  const ofOne = [sha256("one")];
  it.each([
    { name: "asks no store for configured ones", configured: [two], script: {}, did: [], known: [false, true] },
    { name: "generates none beside a stored one", script: { digests: [ofOne] }, did: ["read"], known: [true, false] },
    {
      name: "knows all that are stored",
      script: { digests: [[...ofOne, sha256("two")]] },
      did: ["read"],
      known: [true, true],
    },
    {
      name: "keeps a generated one where none is stored, once it counts",
      script: { digests: [[], ofOne] },
      did: ["read", "hand over", "add first at 0", "keep", "read"],
      known: [true, false],
    },
    {
      name: "takes a generated one back if another process was first, and knows the other's",
      script: { digests: [[], ofOne], first: false },
      did: ["read", "hand over", "add first at 0", "take back", "read"],
      known: [true, false],
    },
    {
      name: "generates none while it is not known whether one is stored",
      script: { digests: [away] },
      did: ["read"],
      known: away,
    },
    {
      name: "leaves a generated one in its file while it is unknown whether it became valid",
      script: { digests: [[]], first: away },
      did: ["read", "hand over", "add first at 0"],
      known: away,
    },
  ])("$name", async ({ configured = [], script, did: expected, known }) => {
    const did: string[] = [];
    const loading = load(scripted(did, script), { configured, did });
    if (known instanceof Error) await expect(loading).rejects.toBe(known);
    else {
      const { rootKeys, generated } = await loading;
      expect([one, two].map((key) => rootKeys.has(key))).toEqual(known);
      expect(generated !== undefined).toBe(did.includes("keep"));
    }
    expect(did).toEqual(expected);
  });

  it("is tried again after the store was away, and reads no more once they are known", async () => {
    const did: string[] = [];
    const store = scripted(did, { digests: [away, [], ofOne] });
    const rootKeys = new RootKeys({ configured: [], store, clock, random });
    await expect(rootKeys.read()).rejects.toBe(away);
    await rootKeys.read();
    expect(() => rootKeys.has(one)).toThrow(Unavailable);
    await rootKeys.read();
    expect(rootKeys.has(one)).toBe(true);
    await rootKeys.read();
    expect(did).toEqual(["read", "read", "read"]);
  });
});

describe("refreshing the root keys", () => {
  it("reads them from the store again, also when there are others or none", async () => {
    const store = scripted([], { digests: [[sha256("one")], [sha256("two")], []] });
    const rootKeys = new RootKeys({ configured: [], store, clock, random });
    await rootKeys.read();
    await rootKeys.refresh();
    expect([one, two].map((key) => rootKeys.has(key))).toEqual([false, true]);
    await rootKeys.refresh();
    expect(() => rootKeys.has(two)).toThrow(Unavailable);
  });

  it("keeps configured ones and asks no store", async () => {
    const did: string[] = [];
    const rootKeys = new RootKeys({ configured: [one], store: scripted(did, {}), clock, random });
    await rootKeys.refresh();
    expect([rootKeys.has(one), did]).toEqual([true, []]);
  });

  it("that began before the first one was stored does not make it unknown again", async () => {
    const store = newStore();
    let answer: (digests: readonly string[]) => void = () => {};
    const slow = new Promise<readonly string[]>((resolve) => {
      answer = resolve;
    });
    let reads = 0;
    const digests = () => (++reads === 1 ? slow : store.digests());
    const rootKeys = new RootKeys({ configured: [], store: { ...store, digests }, clock, random });
    const refreshing = rootKeys.refresh();
    const generated = await rootKeys.load(() => ({ commit() {}, rollback() {} }));
    answer([]);
    await refreshing;
    expect(rootKeys.has(generated as Secret)).toBe(true);
  });
});

describe("a secret", () => {
  it("cannot be judged until the root keys are known; configured ones are known at once", () => {
    const deps = { store: newStore(), clock, random };
    expect(() => new RootKeys({ ...deps, configured: [] }).has(one)).toThrow(Unavailable);
    expect(new RootKeys({ ...deps, configured: [one] }).has(one)).toBe(true);
  });

  it("is a root key while it is among those that are known", async () => {
    const digests = [[sha256("one"), sha256("two")], [sha256("two")], []];
    const known = new RootKeys({ configured: [], store: scripted([], { digests }), clock, random });
    expect(known.areKnown).toBe(false);
    await known.read();
    expect([one, two, new Secret("three")].map((key) => known.has(key))).toEqual([true, true, false]);
    expect(known.areKnown).toBe(true);
    await known.refresh();
    expect([one, two].map((key) => known.has(key))).toEqual([false, true]);
    await known.refresh();
    expect(() => known.has(two)).toThrow(Unavailable);
    expect(known.areKnown).toBe(false);
  });
});
