import { describe, expect, it } from "vitest";
import { sha256 } from "../../src/ambient/crypto.ts";
import { createSystemRandom } from "../../src/ambient/random.ts";
import { formatKey } from "../../src/domain/key-format.ts";
import { type RootKeyVerdict, unlimitedRootKey } from "../../src/domain/root-key.ts";
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
const configuredVerdict = unlimitedRootKey("configured");
const generatedVerdict = unlimitedRootKey("root_generated");

/** Generates the first root key, if there is none, and records the steps with it, in order. */
async function load(
  store: RootKeyStore,
  options: { configured?: Secret[]; handOver?: (rootKey: Secret) => void; did?: string[] } = {},
) {
  const { configured = [], handOver = () => {}, did = [] } = options;
  const rootKeys = new RootKeys({ configured, store, clock, random });
  const handedOver: string[] = [];
  const generated = await rootKeys.generateFirst((rootKey) => {
    did.push("hand over");
    handedOver.push(rootKey.reveal());
    handOver(rootKey);
    return { commit: () => void did.push("keep"), rollback: () => void did.push("take back") };
  });
  return { rootKeys, generated, handedOver, did };
}

/** A store that keeps the first root key. `asked` are the digests that were looked for. */
function newStore(kept = new Map<string, RootKeyVerdict>()) {
  const asked: string[] = [];
  const store: RootKeyStore = {
    async findByDigest(digest) {
      asked.push(digest);
      return kept.get(digest);
    },
    presence: async () => (kept.size > 0 ? "some" : "none"),
    retireGenerated: async () => {},
    announceChange: async () => {},
    addFirst: async (digest) => kept.size === 0 && kept.set(digest, generatedVerdict).size > 0,
  };
  return { ...store, kept, asked };
}

/** A store with these answers. It records the calls. */
function scripted(did: string[], script: { any?: (boolean | Error)[]; first?: boolean | Error }): RootKeyStore {
  const any = inTurn("answers", script.any);
  const first = inTurn("first digests", [script.first ?? true]);
  return {
    findByDigest: async () => undefined,
    async presence() {
      did.push("look");
      return any() ? "some" : "none";
    },
    retireGenerated: async () => {},
    announceChange: async () => {},
    async addFirst(_digest, _start, nowMs) {
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
    expect(store.kept.size).toBe(0);
    const { generated, handedOver, did } = await load(store);
    expect(handedOver).toEqual([generated?.reveal()]);
    expect(did).toEqual(["hand over", "keep"]);
  });

  it("is shown by the start that made it only, and may do everything from then on", async () => {
    const store = newStore();
    const { generated, rootKeys } = await load(store);
    const later = await load(store);

    expect(generated?.reveal()).toMatch(/^lk_root_[0-9A-Za-z]{49}$/);
    expect(later.generated).toBeUndefined();
    expect(later.did).toEqual([]);
    for (const known of [rootKeys, later.rootKeys]) {
      expect(await known.check(generated as Secret)).toEqual(generatedVerdict);
      expect(await known.check(new Secret(`${generated?.reveal()}x`))).toBeUndefined();
    }
  });

  it("is one, with any number of starts at once: the others take back the ones they made", async () => {
    const store = newStore();
    const starts = await Promise.all(Array.from({ length: 5 }, () => load(store)));
    const shown = starts.flatMap(({ generated }) => generated ?? []);
    const takenBack = starts.filter(({ did }) => did.includes("take back"));

    expect(shown).toHaveLength(1);
    expect(new Set(takenBack.flatMap(({ handedOver }) => handedOver)).size).toBe(4);
    for (const { rootKeys } of starts) expect(await rootKeys.check(shown[0] as Secret)).toEqual(generatedVerdict);
  });

  it("does not count beside configured ones, which are not stored", async () => {
    const store = newStore();
    const { generated } = await load(store);
    const { rootKeys, did } = await load(store, { configured: [one, two] });

    const verdicts = await Promise.all([one, two, generated as Secret].map((key) => rootKeys.check(key)));
    expect(verdicts).toEqual([configuredVerdict, configuredVerdict, undefined]);
    expect(store.kept.size).toBe(1);
    expect(did).toEqual([]);
  });
});

describe("the first root key", () => {
  it.each([
    { name: "is not looked for beside configured ones", configured: [two], script: {}, did: [] },
    { name: "is not generated beside a stored one", script: { any: [true] }, did: ["look"] },
    {
      name: "is kept where none is stored, once it counts",
      script: { any: [false] },
      did: ["look", "hand over", "add first at 0", "keep"],
    },
    {
      name: "is taken back if another process was first",
      script: { any: [false], first: false },
      did: ["look", "hand over", "add first at 0", "take back"],
    },
    {
      name: "is not generated while it is not known whether one is stored",
      script: { any: [away] },
      did: ["look"],
      fails: true,
    },
    {
      name: "stays in its file while it is unknown whether it became valid",
      script: { any: [false], first: away },
      did: ["look", "hand over", "add first at 0"],
      fails: true,
    },
  ])("$name", async ({ configured = [], script, did: expected, fails }) => {
    const did: string[] = [];
    const loading = load(scripted(did, script), { configured, did });
    if (fails) await expect(loading).rejects.toBe(away);
    else expect((await loading).generated !== undefined).toBe(did.includes("keep"));
    expect(did).toEqual(expected);
  });
});

describe("a text that is presented", () => {
  const stored = new Secret(formatKey("lk_root", random.bytes(32)).key);
  const verdict: RootKeyVerdict = {
    rootKeyId: "root_1",
    permissions: ["keys.read"],
    apiIds: ["api"],
    expiresAtMs: 5,
  };
  const setUp = (configured: Secret[] = []) => {
    const store = newStore(new Map([[sha256(stored.reveal()), verdict]]));
    return { store, rootKeys: new RootKeys({ configured, store, clock, random }) };
  };

  it("is found by its digest, also beside configured ones", async () => {
    for (const configured of [[], [one]]) {
      const { rootKeys } = setUp(configured);
      expect(await rootKeys.check(stored)).toEqual(verdict);
    }
  });

  it("and is configured needs no store, and its answer is there at once", () => {
    const { rootKeys, store } = setUp([one, two]);
    expect([one, two].map((key) => rootKeys.check(key))).toEqual([configuredVerdict, configuredVerdict]);
    expect(store.asked).toEqual([]);
  });

  it.each([
    ["nothing", ""],
    ["a word", "one"],
    ["a root key with a typing error", `${stored.reveal().slice(0, -7)}${"0".repeat(7)}`],
    ["a root key that is cut off", stored.reveal().slice(0, -1)],
    ["an issued key", formatKey("live", random.bytes(24)).key],
    ["a long text", `lk_root_${"a".repeat(10_000)}`],
  ])("and cannot be a root key costs the store nothing: %s", (_, text) => {
    const { rootKeys, store } = setUp([two]);
    expect(rootKeys.check(new Secret(text))).toBeUndefined();
    expect(store.asked).toEqual([]);
  });

  it("and is none, with the form of one, is looked for", async () => {
    const { rootKeys, store } = setUp();
    expect(await rootKeys.check(new Secret(formatKey("lk_root", random.bytes(32)).key))).toBeUndefined();
    expect(store.asked).toHaveLength(1);
  });

  it("cannot be judged while the store is away", async () => {
    const store = { ...newStore(), findByDigest: () => Promise.reject(away) };
    const rootKeys = new RootKeys({ configured: [], store, clock, random });
    await expect(rootKeys.check(stored)).rejects.toBe(away);
  });
});

describe("whether a caller can have a root key", () => {
  it("is known without the store where some are configured", async () => {
    const did: string[] = [];
    const areAny = (configured: Secret[], any: (boolean | Error)[]) =>
      new RootKeys({ configured, store: scripted(did, { any }), clock, random }).areAny();
    expect([await areAny([one], []), did]).toEqual([true, []]);
    expect([await areAny([], [false]), await areAny([], [true])]).toEqual([false, true]);
    await expect(areAny([], [away])).rejects.toBe(away);
  });
});
