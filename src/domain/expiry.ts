/** A key is valid until the millisecond before it expires. */
export function isExpired(expiresAtMs: number | undefined, nowMs: number): boolean {
  return expiresAtMs !== undefined && expiresAtMs <= nowMs;
}

/**
 * Whether a moment was probably meant in seconds: in milliseconds it would lie before March 1973, in seconds it lies
 * between September 2001 and the year 5138.
 */
export function looksLikeSeconds(atMs: number): boolean {
  return atMs >= 1e9 && atMs < 1e11;
}
