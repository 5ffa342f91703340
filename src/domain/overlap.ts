/** A secret that has ended is kept this long, for replicas whose clocks are behind. */
export const endedSecretKeptMs = 60_000;
