export const base62Alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

const bitsPerCharacter = Math.log2(base62Alphabet.length);

/** Characters that any `byteLength` bytes fit into. */
export function base62Width(byteLength: number): number {
  return Math.ceil((byteLength * 8) / bitsPerCharacter);
}

/**
 * Bytes as one big-endian number in base 62, padded to the width of their length: equal lengths give equal widths,
 * and the order of the texts is the order of the bytes.
 */
export function encodeBase62(bytes: Uint8Array): string {
  return encodeLimbs(toLimbs(bytes), base62Width(bytes.length));
}

/** The same for a number in parts of 24 bits, the highest first. The array is overwritten. */
export function encodeLimbs(limbs: number[], width: number): string {
  const codes: number[] = new Array(width);
  let first = 0;
  for (let end = width; end > 0; end -= digitsPerDivision) {
    // Long division by 62⁴; the remainder is the next four characters from the right.
    let remainder = 0;
    for (let i = first; i < limbs.length; i++) {
      const value = remainder * limbValues + (limbs[i] as number);
      const quotient = Math.floor(value / divisor);
      limbs[i] = quotient;
      remainder = value - quotient * divisor;
    }
    while (limbs[first] === 0) first++;
    // The last division may give fewer than four characters. The rest are zeros, and there is no room for them.
    for (let at = end - 1; at >= Math.max(0, end - digitsPerDivision); at--) {
      const above = Math.floor(remainder / 62);
      codes[at] = alphabetCodes[remainder - above * 62] as number;
      remainder = above;
    }
  }
  // In one call: concatenating characters would build a tree of strings that has to be flattened later.
  return String.fromCharCode(...codes);
}

/* Three bytes and four digits at a time: every number on the way has less than 53 bits. */
const limbValues = 2 ** 24;
const digitsPerDivision = 4;
const divisor = base62Alphabet.length ** digitsPerDivision;
const alphabetCodes = Array.from(base62Alphabet, (character) => character.charCodeAt(0));

function toLimbs(bytes: Uint8Array): number[] {
  const limbs: number[] = [];
  // The first part may be shorter, so that all others have three bytes.
  let limb = 0;
  for (let i = 0; i < bytes.length; i++) {
    limb = limb * 256 + (bytes[i] as number);
    if ((bytes.length - 1 - i) % 3 === 0) {
      limbs.push(limb);
      limb = 0;
    }
  }
  return limbs;
}

/** The number of characters at the text's end that belong to the alphabet. */
export function base62LengthAtEnd(text: string): number {
  let at = text.length;
  while (at > 0 && isOfAlphabet[text.charCodeAt(at - 1)] === 1) at--;
  return text.length - at;
}

const isOfAlphabet = Uint8Array.from({ length: 128 }, (_, code) =>
  base62Alphabet.includes(String.fromCharCode(code)) ? 1 : 0,
);
