import { encodeBase62 } from "./base62.ts";

export type IdKind = "key" | "req";

/** Random bytes an id is made of, beside the time. */
export const idRandomLength = 10;

/** An id whose order is the order of creation (to the millisecond), with 80 random bits behind the time. */
export function formatId(kind: IdKind, nowMs: number, random: Uint8Array): string {
  const bytes = new Uint8Array(6 + idRandomLength);
  let rest = nowMs;
  for (let i = 5; i >= 0; i--) {
    bytes[i] = rest % 256;
    rest = Math.floor(rest / 256);
  }
  bytes.set(random.subarray(0, idRandomLength), 6);
  return `${kind}_${encodeBase62(bytes)}`;
}
