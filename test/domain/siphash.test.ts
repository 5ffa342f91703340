import { describe, expect, it } from "vitest";
import { SipHash } from "../../src/domain/siphash.ts";
import { SeededRandom } from "./seeded-random.ts";

const countingKey = counting(16);
const lengthMax = 400;

describe("SipHash", () => {
  it.each([
    [0, "a3817f04ba25a8e66df67214c7550293"],
    [1, "da87c1d86b99af44347659119b22fc45"],
    [15, "5493e99933b0a8117e08ec0f97cfc3d9"],
    [63, "5150d1772f50834a503e069a973fbd7c"],
  ])("has for %i bytes the hash that the reference has", (length, expected) => {
    expect(hashOf(new SipHash(countingKey), counting(length))).toBe(expected);
  });

  it("agrees with arithmetic of 64 bits for texts of every length, under many keys", () => {
    const random = new SeededRandom(1);
    for (let length = 0; length <= lengthMax; length++) {
      const key = randomBytes(random, 16);
      const bytes = randomBytes(random, length);
      expect(hashOf(new SipHash(key), bytes), `${length} bytes`).toBe(plainSipHash(key, bytes, 16));
    }
  });

  it("keeps nothing of one text for the next", () => {
    const random = new SeededRandom(2);
    const hasher = new SipHash(countingKey);
    for (let i = 0; i < 1000; i++) {
      const bytes = randomBytes(random, random.integer(0, 50));
      expect(hashOf(hasher, bytes)).toBe(plainSipHash(countingKey, bytes, 16));
    }
  });

  it("has no hash for a text with a character of more than a byte, wherever it is", () => {
    const hasher = new SipHash(countingKey);
    const text = "a".repeat(43);
    for (let at = 0; at < text.length; at++) {
      const twin = String.fromCharCode(text.charCodeAt(at) + 0x100);
      expect(hasher.hash(text.slice(0, at) + twin + text.slice(at + 1)), `position ${at}`).toBe(false);
    }
    expect(hasher.hash(text)).toBe(true);
  });

  it.each([0, 15, 17])("refuses a key of %i bytes", (length) => {
    expect(() => new SipHash(counting(length))).toThrow("16 bytes");
  });
});

describe("the arithmetic of 64 bits that it is compared with", () => {
  it("has the hash of the paper that describes SipHash", () => {
    const bytes = Buffer.from(plainSipHash(countingKey, counting(15), 8), "hex");
    expect(bytes.readBigUInt64LE().toString(16)).toBe("a129ca6149be45e5");
  });
});

function hashOf(hasher: SipHash, bytes: Uint8Array): string {
  expect(hasher.hash(Buffer.from(bytes).toString("latin1"))).toBe(true);
  const hash = Buffer.alloc(16);
  hasher.words.forEach((word, i) => {
    hash.writeInt32LE(word, i * 4);
  });
  return hash.toString("hex");
}

/** SipHash-2-4 word for word as it is described, with 8 or 16 bytes of output. */
function plainSipHash(key: Uint8Array, message: Uint8Array, outputLength: 8 | 16): string {
  const [k0, k1] = [Buffer.from(key).readBigUInt64LE(0), Buffer.from(key).readBigUInt64LE(8)];
  let v0 = k0 ^ 0x736f6d6570736575n;
  let v1 = k1 ^ 0x646f72616e646f6dn;
  let v2 = k0 ^ 0x6c7967656e657261n;
  let v3 = k1 ^ 0x7465646279746573n;
  const rounds = (count: number) => {
    for (let i = 0; i < count; i++) {
      v0 = BigInt.asUintN(64, v0 + v1);
      v1 = rotate(v1, 13n) ^ v0;
      v0 = rotate(v0, 32n);
      v2 = BigInt.asUintN(64, v2 + v3);
      v3 = rotate(v3, 16n) ^ v2;
      v0 = BigInt.asUintN(64, v0 + v3);
      v3 = rotate(v3, 21n) ^ v0;
      v2 = BigInt.asUintN(64, v2 + v1);
      v1 = rotate(v1, 17n) ^ v2;
      v2 = rotate(v2, 32n);
    }
  };

  if (outputLength === 16) v1 ^= 0xeen;
  const padded = Buffer.alloc(Math.floor(message.length / 8) * 8 + 8);
  padded.set(message);
  padded[padded.length - 1] = message.length % 256;
  for (let at = 0; at < padded.length; at += 8) {
    const word = padded.readBigUInt64LE(at);
    v3 ^= word;
    rounds(2);
    v0 ^= word;
  }

  const output = Buffer.alloc(outputLength);
  v2 ^= outputLength === 16 ? 0xeen : 0xffn;
  rounds(4);
  output.writeBigUInt64LE(v0 ^ v1 ^ v2 ^ v3, 0);
  if (outputLength === 16) {
    v1 ^= 0xddn;
    rounds(4);
    output.writeBigUInt64LE(v0 ^ v1 ^ v2 ^ v3, 8);
  }
  return output.toString("hex");
}

function rotate(word: bigint, by: bigint): bigint {
  return BigInt.asUintN(64, word << by) | (word >> (64n - by));
}

function counting(length: number): Uint8Array {
  return Uint8Array.from({ length }, (_, i) => i);
}

function randomBytes(random: SeededRandom, length: number): Uint8Array {
  return Uint8Array.from({ length }, () => random.integer(0, 255));
}
