import { base62Alphabet, base62Width, encodeBase62, isBase62 } from "./base62.ts";

/*
 * A key is `[prefix_]body` followed by 6 base62 characters: the CRC32 of everything before them. The checksum is no
 * protection against an attacker; it tells a typo, a truncation or garbage from a key without a look at the store.
 */

export const byteLengthMin = 16;
export const byteLengthMax = 255;
export const byteLengthDefault = 24;
const prefixLengthMax = 16;
const prefixPattern = /^[A-Za-z](?:[A-Za-z0-9_]{0,14}[A-Za-z0-9])?$/;
const checksumLength = 6;
const shortestKey = base62Width(byteLengthMin) + checksumLength;
const longestKey = prefixLengthMax + 1 + base62Width(byteLengthMax) + checksumLength;
const startBodyLength = 4;

/** The key for these random bytes, and its `start`: what people may see of it to tell keys apart. */
export function formatKey(prefix: string | undefined, random: Uint8Array): { key: string; start: string } {
  const lead = prefix === undefined ? "" : `${prefix}_`;
  const body = encodeBase62(random);
  const unchecked = lead + body;
  return { key: unchecked + checksum(unchecked), start: lead + body.slice(0, startBodyLength) };
}

/** Whether the text could be a key at all. False for everything with a wrong length, alphabet or checksum. */
export function isWellFormedKey(text: string): boolean {
  if (text.length < shortestKey || text.length > longestKey) return false;
  const prefixLength = text.lastIndexOf("_");
  if (prefixLength !== -1 && !prefixPattern.test(text.slice(0, prefixLength))) return false;
  const body = text.slice(prefixLength + 1);
  if (body.length < shortestKey || !isBase62(body)) return false;
  const unchecked = text.slice(0, -checksumLength);
  return checksum(unchecked) === text.slice(-checksumLength);
}

function checksum(text: string): string {
  let rest = crc32(text);
  let out = "";
  for (let i = 0; i < checksumLength; i++) {
    out = base62Alphabet.charAt(rest % 62) + out;
    rest = Math.floor(rest / 62);
  }
  return out;
}

const crcTable = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1;
  return value;
});

/** CRC-32 (IEEE) of a text's UTF-16 units, which for the ASCII texts that can be keys are its bytes. */
function crc32(text: string): number {
  let crc = 0xffffffff;
  for (let i = 0; i < text.length; i++) {
    crc = (crc >>> 8) ^ (crcTable[(crc ^ text.charCodeAt(i)) & 0xff] as number);
  }
  return (crc ^ 0xffffffff) >>> 0;
}
