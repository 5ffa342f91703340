/** A key, or a secret that was replaced, is valid until the millisecond before it expires. */
export function isExpired(expiresAtMs: number | undefined, nowMs: number): boolean {
  return expiresAtMs !== undefined && expiresAtMs <= nowMs;
}

/**
 * Whether a time was probably given in seconds: as milliseconds it is before March 1973, as seconds it is between
 * September 2001 and the year 5138.
 */
export function looksLikeSeconds(atMs: number): boolean {
  return atMs >= 1e9 && atMs < 1e11;
}

/** A secret that has ended is kept this long, for replicas whose clocks are behind. */
export const endedSecretKeptMs = 60_000;
