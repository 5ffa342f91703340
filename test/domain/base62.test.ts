import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { base62Alphabet, base62LengthAtEnd, base62Width, encodeBase62 } from "../../src/domain/base62.ts";

describe("encodeBase62", () => {
  it("writes the bytes as one big-endian number, as BigInt reads it back", () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 1, maxLength: 255 }), (bytes) => {
        expect(numberOf(encodeBase62(bytes))).toBe(BigInt(`0x${Buffer.from(bytes).toString("hex")}`));
      }),
    );
  });

  it("keeps the order of byte strings of one length", () => {
    const pair = fc
      .integer({ min: 1, max: 40 })
      .chain((length) => fc.tuple(bytesOf(length), bytesOf(length)) as fc.Arbitrary<[Uint8Array, Uint8Array]>);
    fc.assert(
      fc.property(pair, ([a, b]) => {
        expect(compare(encodeBase62(a), encodeBase62(b))).toBe(Math.sign(Buffer.compare(a, b)));
      }),
    );
  });

  it("leaves its input as it was", () => {
    const bytes = Uint8Array.of(1, 2, 3);
    encodeBase62(bytes);
    expect(bytes).toEqual(Uint8Array.of(1, 2, 3));
  });
});

describe("base62Width", () => {
  it("is the narrowest that holds every value of that many bytes", () => {
    for (let byteLength = 1; byteLength <= 255; byteLength++) {
      const values = 256n ** BigInt(byteLength);
      const width = BigInt(base62Width(byteLength));
      expect(62n ** width >= values && 62n ** (width - 1n) < values, `${byteLength} bytes`).toBe(true);
    }
  });

  it("is the width of every text, leading zeros included", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 255 }), fc.constantFrom(0, 1, 255), (length, fill) => {
        expect(encodeBase62(new Uint8Array(length).fill(fill))).toHaveLength(base62Width(length));
      }),
    );
  });
});

describe("base62LengthAtEnd", () => {
  it("knows each of the 62 characters and no other of the first 1024", () => {
    const known = Array.from({ length: 1024 }, (_, code) => String.fromCharCode(code)).filter(isBase62);
    expect(known.join("")).toBe(base62Alphabet);
    expect(new Set(base62Alphabet).size).toBe(62);
  });

  it.each(["_", "a_b", "abc ", "-", "ä", "a\u0000", "０"])("refuses %j", (text) => {
    expect(isBase62(text)).toBe(false);
  });
});

function isBase62(text: string): boolean {
  return base62LengthAtEnd(text) === text.length;
}

function numberOf(text: string): bigint {
  return [...text].reduce((sum, character) => sum * 62n + BigInt(base62Alphabet.indexOf(character)), 0n);
}

function bytesOf(length: number): fc.Arbitrary<Uint8Array> {
  return fc.uint8Array({ minLength: length, maxLength: length });
}

function compare(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
