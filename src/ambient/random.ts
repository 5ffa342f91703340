import { randomFillSync } from "node:crypto";

/** Randomness that an attacker cannot predict. */
export interface Random {
  /** Fresh random bytes. The caller owns them. */
  bytes(length: number): Uint8Array;
}

const poolSize = 4096;

/** One call into the system's generator costs as much for 4096 bytes as for 16, so small requests share one. */
export function createSystemRandom(): Random {
  const pool = new Uint8Array(poolSize);
  let used = poolSize;
  return {
    bytes(length) {
      if (length > poolSize) return randomFillSync(new Uint8Array(length));
      if (used + length > poolSize) {
        randomFillSync(pool);
        used = 0;
      }
      const bytes = new Uint8Array(length);
      for (let i = 0; i < length; i++, used++) {
        bytes[i] = pool[used] as number;
        // Handed-out bytes become keys: they must not stay readable here.
        pool[used] = 0;
      }
      return bytes;
    },
  };
}
