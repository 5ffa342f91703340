/*
 * Every random choice comes from one seed. `npm run test:deep` takes a new one each time and tells it where something was
 * found; `npm run hostile -- --seed <seed> --minutes <minutes>` replays one, or goes on for longer.
 */

const { LATCHKEY_HOSTILE_SEED, LATCHKEY_HOSTILE_MINUTES } = process.env;

export const seed = Number(LATCHKEY_HOSTILE_SEED ?? Date.now() % 2 ** 32);
/** Undefined in `npm run test:deep`, which goes through everything once. */
export const minutes = LATCHKEY_HOSTILE_MINUTES === undefined ? undefined : Number(LATCHKEY_HOSTILE_MINUTES);
export const isLong = minutes !== undefined;

/** What a part of the harness may take in all: its share of the minutes, or so many seconds in `npm run test:deep`. */
export function partMs(share: number, secondsInTest: number): number {
  return minutes === undefined ? secondsInTest * 1000 : share * minutes * 60_000;
}

/** What a test needs on top, to start its processes and on a busy machine. */
export const timeoutMs = (minutes ?? 0) * 60_000 + 400_000;

/** A seed for one part, so that a part replays without the parts before it. */
export function seedFor(part: string, round = 0): number {
  let mixed = seed ^ Math.imul(round + 1, 0x9e3779b1);
  for (const letter of part) mixed = Math.imul(mixed ^ letter.charCodeAt(0), 0x01000193);
  return mixed >>> 0;
}

export const replay = `replay with: npm run hostile -- --seed ${seed}${isLong ? ` --minutes ${minutes}` : ""}`;
