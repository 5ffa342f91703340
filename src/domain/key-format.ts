import { base62Alphabet, base62LengthAtEnd, base62Width, encodeBase62 } from "./base62.ts";

/*
 * A key is `[prefix_]body` followed by 6 base62 characters: the CRC32 of everything before them. The checksum does not
 * protect against an attacker. It detects typos, cut-off keys and garbage without a query to the store.
 */

export const byteLengthMin = 16;
export const byteLengthMax = 255;
export const byteLengthDefault = 24;
export const prefixLengthMax = 16;
export const prefixPattern = /^[A-Za-z](?:[A-Za-z0-9_]{0,14}[A-Za-z0-9])?$/;
const checksumLength = 6;
const shortestKey = base62Width(byteLengthMin) + checksumLength;
const longestKey = prefixLengthMax + 1 + base62Width(byteLengthMax) + checksumLength;
const startBodyLength = 4;
const underscore = 0x5f;

/** The key for these random bytes, and its `start`: the part that may be shown, by which people recognise the key. */
export function formatKey(prefix: string | undefined, random: Uint8Array): { key: string; start: string } {
  const lead = prefix === undefined ? "" : `${prefix}_`;
  const body = encodeBase62(random);
  const unchecked = lead + body;
  return { key: unchecked + checksum(unchecked), start: lead + body.slice(0, startBodyLength) };
}

/** The prefix of the key with this `start`, if it has one. That of an imported key may be any text. */
export function prefixOfStart(start: string): string | undefined {
  const prefix = /^(.+)_[0-9A-Za-z]{4}$/.exec(start)?.[1];
  return prefix !== undefined && prefixPattern.test(prefix) ? prefix : undefined;
}

/** Whether the text could be a key. False if its length, alphabet or checksum is wrong. */
export function isWellFormedKey(text: string): boolean {
  if (text.length < shortestKey || text.length > longestKey) return false;
  const bodyStart = text.length - base62LengthAtEnd(text);
  if (text.length - bodyStart < shortestKey) return false;
  // Before the body there is nothing, or a prefix and an underscore.
  if (bodyStart > 0) {
    if (text.charCodeAt(bodyStart - 1) !== underscore) return false;
    if (!prefixPattern.test(text.slice(0, bodyStart - 1))) return false;
  }
  return endsInChecksum(text);
}

/** The same as comparing the end with `checksum` of the rest, without creating a string. */
function endsInChecksum(text: string): boolean {
  let rest = crc32(text, text.length - checksumLength);
  for (let i = text.length - 1; i >= text.length - checksumLength; i--) {
    const above = Math.floor(rest / 62);
    if (text.charCodeAt(i) !== base62Alphabet.charCodeAt(rest - above * 62)) return false;
    rest = above;
  }
  return true;
}

function checksum(text: string): string {
  let rest = crc32(text, text.length);
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

/** CRC-32 (IEEE) of a text's first UTF-16 units. Keys are ASCII, so the units are the bytes. */
function crc32(text: string, length: number): number {
  let crc = 0xffffffff;
  for (let i = 0; i < length; i++) crc = (crc >>> 8) ^ (crcTable[(crc ^ text.charCodeAt(i)) & 0xff] as number);
  return (crc ^ 0xffffffff) >>> 0;
}
