import type { Random } from "../../ambient/random.ts";

/** Numbers for windows: random in front, so that no two replicas or threads come up with the same. */
export function numbersFrom(random: Random): () => number {
  const [a = 0, b = 0, c = 0] = random.bytes(3);
  const first = ((a << 16) | (b << 8) | c) * 2 ** 28;
  let next = 0;
  return () => {
    next = (next + 1) % 2 ** 28;
    return first + next;
  };
}
