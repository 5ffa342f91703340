/** The longest that a secret lives on after it was replaced: 90 days. */
export const overlapMsMax = 90 * 24 * 60 * 60 * 1000;

/** A secret that has ended is kept this long, for replicas whose clocks are behind. */
export const endedSecretKeptMs = 60_000;
