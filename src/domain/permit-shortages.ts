/**
 * Since when requests for more than `above` could not be served. A cost that is out of reach puts all larger ones out of
 * reach. So a list of these begins with the largest costs, which have been out of reach for longest.
 */
export interface ShortLevel {
  readonly above: number;
  readonly sinceMs: number;
}

/** More would only make a cost wait a little longer that came out of reach after so many others. */
const levelsMax = 32;

/** The levels when costs up to `reach` can be served. Those above it are out of reach for as long as before. */
export function withinReach(levels: readonly ShortLevel[], reach: number): readonly ShortLevel[] {
  const at = levels.findIndex(({ above }) => above < reach);
  if (at < 0) return levels;
  const kept = levels.slice(0, at);
  return kept.at(-1)?.above === reach ? kept : [...kept, { ...(levels[at] as ShortLevel), above: reach }];
}

/** The levels when a request for `cost` waits, which is more than `reach`. */
export function outOfReach(
  levels: readonly ShortLevel[],
  reach: number,
  cost: number,
  nowMs: number,
): readonly ShortLevel[] {
  const last = levels.at(-1);
  if (last !== undefined && cost > last.above) return levels;
  return [...levels.slice(0, levelsMax - 1), { above: reach, sinceMs: nowMs }];
}
