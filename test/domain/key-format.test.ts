import { crc32 } from "node:zlib";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { base62Alphabet } from "../../src/domain/base62.ts";
import {
  byteLengthDefault,
  byteLengthMax,
  byteLengthMin,
  formatKey,
  isWellFormedKey,
} from "../../src/domain/key-format.ts";

const checksumLength = 6;
const longestPrefix = "a234567890123456";
const prefixes = [undefined, "a", "live", "sk_live", "a__b", "Z9", longestPrefix] as const;

const anyKey = fc
  .record({
    prefix: fc.constantFrom(...prefixes),
    random: fc.uint8Array({ minLength: byteLengthMin, maxLength: 64 }),
  })
  .map(({ prefix, random }) => formatKey(prefix, random).key);

describe("formatKey", () => {
  it.each([
    [16, 22],
    [17, 23],
    [24, 33],
    [32, 43],
    [255, 343],
  ])("turns %i random bytes into a body of %i characters and 6 of checksum", (byteLength, width) => {
    expect(formatKey(undefined, counting(byteLength)).key).toMatch(new RegExp(`^[0-9A-Za-z]{${width + 6}}$`));
    expect(formatKey("live", counting(byteLength)).key).toMatch(new RegExp(`^live_[0-9A-Za-z]{${width + 6}}$`));
  });

  it("ends in the CRC-32 that zlib computes of everything before it", () => {
    fc.assert(
      fc.property(anyKey, (key) => {
        const checked = key.slice(0, -checksumLength);
        expect(numberOf(key.slice(-checksumLength))).toBe(crc32(checked));
      }),
    );
  });

  it("keeps making the very keys that were issued before", () => {
    expect(formatKey("live", counting(24)).key).toBe("live_000A7dl5PEW67zZCpFU9uKaHnGgOvQKAR3rr0ib");
  });

  it.each([
    [undefined, 4],
    ["a", 6],
    ["sk_live", 12],
    [longestPrefix, 21],
  ])(
    "shows as the start of a key with prefix %j its first %i characters: the prefix and 4 of the body",
    (prefix, length) => {
      const { key, start } = formatKey(prefix, counting(24));
      expect(start).toBe(key.slice(0, length));
      expect(start).toBe(
        `${prefix === undefined ? "" : `${prefix}_`}${formatKey(undefined, counting(24)).key.slice(0, 4)}`,
      );
    },
  );

  it("uses every byte: keys differ when any one byte does", () => {
    const keys = new Set([formatKey(undefined, new Uint8Array(byteLengthDefault)).key]);
    for (let i = 0; i < byteLengthDefault; i++)
      keys.add(formatKey(undefined, new Uint8Array(byteLengthDefault).fill(1, i, i + 1)).key);
    expect(keys.size).toBe(byteLengthDefault + 1);
  });
});

describe("isWellFormedKey", () => {
  it.each(prefixes)("accepts keys of every byte length with prefix %j", (prefix) => {
    for (let byteLength = byteLengthMin; byteLength <= byteLengthMax; byteLength++) {
      expect(isWellFormedKey(formatKey(prefix, counting(byteLength)).key), `${byteLength} bytes`).toBe(true);
    }
  });

  it.each([0, 255])("accepts the shortest and the longest key made of bytes of %i", (fill) => {
    const shortest = formatKey(undefined, new Uint8Array(byteLengthMin).fill(fill)).key;
    const longest = formatKey(longestPrefix, new Uint8Array(byteLengthMax).fill(fill)).key;
    expect([shortest.length, longest.length]).toEqual([28, 366]);
    expect([shortest, longest].map(isWellFormedKey)).toEqual([true, true]);
  });

  it("detects every change of a single character to any other", () => {
    const anyUnit = fc.oneof(
      fc.constantFrom(...base62Alphabet, "_", "-", " "),
      fc.integer({ min: 0, max: 0xffff }).map((code) => String.fromCharCode(code)),
    );
    fc.assert(
      fc.property(anyKey, fc.nat(), anyUnit, (key, position, unit) => {
        const at = position % key.length;
        fc.pre(key[at] !== unit);
        expect(isWellFormedKey(key.slice(0, at) + unit + key.slice(at + 1))).toBe(false);
      }),
      { numRuns: 2000 },
    );
  });

  it("detects a character swapped for one whose code ends in the same byte, at every position", () => {
    const { key } = formatKey("sk_live", counting(24));
    for (let at = 0; at < key.length; at++) {
      const twin = String.fromCharCode(key.charCodeAt(at) + 0x100);
      expect(isWellFormedKey(key.slice(0, at) + twin + key.slice(at + 1)), `position ${at}`).toBe(false);
    }
  });

  it("detects every truncation, at either end", () => {
    fc.assert(
      fc.property(anyKey, fc.nat(), (key, cut) => {
        const kept = cut % key.length;
        expect([key.slice(0, kept), key.slice(key.length - kept)].map(isWellFormedKey)).toEqual([false, false]);
      }),
      { numRuns: 1000 },
    );
  });

  it("detects every extension, at either end", () => {
    fc.assert(
      fc.property(
        anyKey,
        fc.string({ minLength: 1, maxLength: 8, unit: fc.constantFrom(...base62Alphabet, "_") }),
        (key, more) => {
          expect([key + more, more + key].map(isWellFormedKey)).toEqual([false, false]);
        },
      ),
      { numRuns: 1000 },
    );
  });

  it.each([
    ["nothing", ""],
    ["one character", "a"],
    ["27 characters with a right checksum", withChecksum("0".repeat(21))],
    ["367 characters with a right checksum", withChecksum(`${longestPrefix}_${"0".repeat(344)}`)],
    ["an empty prefix", withChecksum(`_${"0".repeat(22)}`)],
    ["a prefix that starts with a digit", withChecksum(`1a_${"0".repeat(22)}`)],
    ["a prefix that ends in an underscore", withChecksum(`a__${"0".repeat(22)}`)],
    ["a prefix of 17 characters", withChecksum(`${longestPrefix}7_${"0".repeat(22)}`)],
    ["a prefix with a foreign character", withChecksum(`a-b_${"0".repeat(22)}`)],
    ["a prefix beyond ASCII", withChecksum(`ä_${"0".repeat(22)}`)],
    ["a body too short for its prefix to make up for", withChecksum(`sk_live_${"0".repeat(21)}`)],
    ["a body with a space", withChecksum(`${"0".repeat(21)} `)],
    ["a line break at the end", `${formatKey(undefined, counting(24)).key}\n`],
    ["a key in quotes", `"${formatKey(undefined, counting(24)).key}"`],
    ["a million characters", "a".repeat(1_000_000)],
  ])("refuses %s", (_, text) => {
    expect(isWellFormedKey(text)).toBe(false);
  });

  it("refuses those for what is said of them, not for their checksum", () => {
    expect(isWellFormedKey(withChecksum("0".repeat(22)))).toBe(true);
    expect(isWellFormedKey(withChecksum(`a_b_${"0".repeat(22)}`))).toBe(true);
  });
});

function counting(length: number): Uint8Array {
  return Uint8Array.from({ length }, (_, i) => i);
}

function numberOf(text: string): number {
  return [...text].reduce((sum, character) => sum * 62 + base62Alphabet.indexOf(character), 0);
}

/** The text with the checksum a key made of it would have, by zlib: over the low bytes, as the key format computes it. */
function withChecksum(text: string): string {
  let rest = crc32(Buffer.from(text, "latin1"));
  let checksum = "";
  for (let i = 0; i < checksumLength; i++) {
    checksum = base62Alphabet.charAt(rest % 62) + checksum;
    rest = Math.floor(rest / 62);
  }
  return text + checksum;
}
