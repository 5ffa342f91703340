import { base62Width, encodeLimbs } from "./base62.ts";

export type IdKind = "key" | "api" | "root" | "req" | "evt";

/** Random bytes in an id, after the time. */
export const idRandomLength = 10;

const width = base62Width(6 + idRandomLength);

/**
 * An id that sorts by creation time (to the millisecond), with 80 random bits after the time.
 */
export function formatId(kind: IdKind, nowMs: number, random: Uint8Array): string {
  const byte = (index: number) => random[index] as number;
  // Six bytes of time and ten random bytes, as one number in parts of three bytes.
  const high = Math.floor(nowMs / 2 ** 16);
  const low = nowMs - high * 2 ** 16;
  const limbs = [
    high >>> 24,
    high & 0xffffff,
    (low << 8) | byte(0),
    (byte(1) << 16) | (byte(2) << 8) | byte(3),
    (byte(4) << 16) | (byte(5) << 8) | byte(6),
    (byte(7) << 16) | (byte(8) << 8) | byte(9),
  ];
  return `${kind}_${encodeLimbs(limbs, width)}`;
}

/** Before every id of the kind that was made at that time or later, and behind those that were made before. */
export function earliestId(kind: IdKind, atMs: number): string {
  return formatId(kind, atMs, noRandom);
}

const noRandom = new Uint8Array(idRandomLength);
