import type { Json } from "./fields.ts";

/** The most that the metadata of a key may take as JSON in UTF-8. Every verification returns it. */
export const metaBytesMax = 16_384;
export const metaDepthMax = 16;

/**
 * Whether objects and lists are nested in it more than this deep. It looks no deeper than that: a stranger's value can be
 * so deep that following it to its end would overflow the stack.
 */
export function isDeeperThan(depthMax: number, value: Json): boolean {
  if (value === null || typeof value !== "object") return false;
  return depthMax === 0 || Object.values(value).some((inner) => isDeeperThan(depthMax - 1, inner as Json));
}
