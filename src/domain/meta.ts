import type { Json } from "./key.ts";

/** The most that the metadata of a key may take as JSON in UTF-8. Every verification returns it. */
export const metaBytesMax = 16_384;
export const metaDepthMax = 16;

/** How deep the value is nested: 0 for one that is neither an object nor a list. */
export function depthOf(value: Json): number {
  if (value === null || typeof value !== "object") return 0;
  return 1 + Object.values(value).reduce<number>((deepest, inner) => Math.max(deepest, depthOf(inner as Json)), 0);
}
