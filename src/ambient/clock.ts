/** Time, as everything but this file gets it. */
export interface Clock {
  /** Unix time in milliseconds. It can step forwards and backwards. */
  nowMs(): number;
  /** Milliseconds since some fixed moment; never steps. For measuring how long a thing took. */
  monotonicMs(): number;
}

export const systemClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
};
