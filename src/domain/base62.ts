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
  const digits = Uint8Array.from(bytes);
  let text = "";
  for (let width = base62Width(bytes.length); width > 0; width--) {
    // Long division by 62; the remainder is the next character from the right.
    let remainder = 0;
    for (let i = 0; i < digits.length; i++) {
      const value = remainder * 256 + (digits[i] as number);
      digits[i] = Math.floor(value / 62);
      remainder = value % 62;
    }
    text = base62Alphabet.charAt(remainder) + text;
  }
  return text;
}

export function isBase62(text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i);
    const known = (c >= 48 && c <= 57) || (c >= 65 && c <= 90) || (c >= 97 && c <= 122);
    if (!known) return false;
  }
  return true;
}
