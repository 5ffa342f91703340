import { describe, expect, it } from "vitest";
import { sha256 } from "../../src/ambient/crypto.ts";
import { base62Alphabet } from "../../src/domain/base62.ts";
import { formatKey, isWellFormedKey, longestKey } from "../../src/domain/key-format.ts";
import { SipHash } from "../../src/domain/siphash.ts";
import { KnownDigests, type TextHash } from "../../src/usecases/known-digests.ts";
import { SeededRandom } from "../domain/seeded-random.ts";

const texts = 20_000;
const prefixes = [undefined, "a", "live", "sk_live"] as const;
const [keyA, keyB] = [1, 2].map((fill) => formatKey("live", new Uint8Array(24).fill(fill)).key) as [string, string];

describe("KnownDigests", () => {
  it.each([1, 2, 4, 64, 1024])("says of every text what checking and digesting it says, with %i slots", (slots) => {
    const random = new SeededRandom(slots);
    const digests = new KnownDigests(new SipHash(randomBytes(random, 16)), slots);
    const keys = Array.from({ length: 200 }, () => someKey(random));
    for (let i = 0; i < texts; i++) {
      const text = someText(random, keys);
      if (digests.digestOf(text) !== digestAnew(text)) expect.fail(`another digest for ${JSON.stringify(text)}`);
    }
  });

  it.each([0, 1, 2, 3])("tells texts apart whose tags differ in word %i only, and in one bit of it", (word) => {
    for (let bit = 0; bit < 32; bit++) {
      const tag = [7, 7, 7, 7];
      const other = tag.with(word, 7 ^ (1 << bit));
      const digests = new KnownDigests(taggedBy({ [keyA]: tag, [keyB]: other }), 1);
      for (const key of [keyA, keyB, keyA]) expect(digests.digestOf(key)).toBe(sha256(key));
    }
  });

  it("knows a text by its tag, which the tests with tags rely on", () => {
    const digests = new KnownDigests(taggedBy({ [keyA]: [7, 7, 7, 7], [keyB]: [7, 7, 7, 7] }), 1);
    expect([keyA, keyB].map((key) => digests.digestOf(key))).toEqual([sha256(keyA), sha256(keyA)]);
  });

  it("takes a slot that was never used for no text's, whatever the tag", () => {
    const digests = new KnownDigests(taggedBy({ [keyA]: [0, 0, 0, 0], garbage: [0, 0, 0, 0] }), 1);
    expect(digests.digestOf("garbage")).toBeUndefined();
    expect(digests.digestOf(keyA)).toBe(sha256(keyA));
  });

  it("lets garbage push out nothing", () => {
    const tag = [7, 7, 7, 7];
    const digests = new KnownDigests(taggedBy({ [keyA]: tag, garbage: [8, 8, 8, 8], [keyB]: tag }), 1);
    digests.digestOf(keyA);
    expect(digests.digestOf("garbage")).toBeUndefined();
    // Still there to be mistaken for the other.
    expect(digests.digestOf(keyB)).toBe(sha256(keyA));
  });

  it("mistakes no character for one whose code ends in the same byte", () => {
    const digests = new KnownDigests(new SipHash(new Uint8Array(16)), 1);
    for (let at = 0; at < keyA.length; at++) {
      expect(digests.digestOf(keyA)).toBe(sha256(keyA));
      const twin = String.fromCharCode(keyA.charCodeAt(at) + 0x100);
      expect(digests.digestOf(keyA.slice(0, at) + twin + keyA.slice(at + 1)), `position ${at}`).toBeUndefined();
    }
  });

  it("hashes no text that is longer than a key can be", () => {
    const digests = new KnownDigests(taggedBy({}), 1);
    expect(digests.digestOf("a".repeat(longestKey + 1))).toBeUndefined();
    expect(() => digests.digestOf("a".repeat(longestKey))).toThrow("no tag");
  });

  it.each([1, 1024, 1025, 100_000, 10_000_000])("can be made for %i keys", (keysMax) => {
    const random = new SeededRandom(keysMax);
    const digests = KnownDigests.forKeys(keysMax, { bytes: (length) => randomBytes(random, length) });
    for (const key of [keyA, keyB, keyA, keyB]) expect(digests.digestOf(key)).toBe(sha256(key));
  });
});

function digestAnew(text: string): string | undefined {
  return isWellFormedKey(text) ? sha256(text) : undefined;
}

/** In place of a hash, tags as the test wants them. */
function taggedBy(tags: Readonly<Record<string, readonly number[]>>): TextHash {
  const words = new Int32Array(4);
  return {
    words,
    hash(text) {
      const tag = tags[text];
      if (tag === undefined) throw new Error("no tag");
      words.set(tag);
      return true;
    },
  };
}

/** A key that comes again or never came, or what is nearly one. */
function someText(random: SeededRandom, keys: readonly string[]): string {
  const key = random.pick(keys);
  const at = random.integer(0, key.length - 1);
  switch (random.integer(0, 7)) {
    case 0:
      return someKey(random);
    case 1:
      return key.slice(0, at) + random.pick([...base62Alphabet, "_", " ", "ä", "ı"]) + key.slice(at + 1);
    case 2:
      return key.slice(0, at);
    case 3:
      return key + random.pick(keys).slice(0, at);
    case 4:
      return Buffer.from(randomBytes(random, at)).toString("latin1");
    default:
      return key;
  }
}

function someKey(random: SeededRandom): string {
  return formatKey(random.pick(prefixes), randomBytes(random, random.integer(16, 40))).key;
}

function randomBytes(random: SeededRandom, length: number): Uint8Array {
  return Uint8Array.from({ length }, () => random.integer(0, 255));
}
