import { editDistance } from "./edit-distance.ts";

/** A sentence to put behind an error: the name that was probably meant. Nothing if none is near. */
export function suggest(typed: string, names: readonly string[], before = ""): string {
  const name = nearestName(typed, names);
  return name === undefined ? "" : `; did you mean ${before}${name}?`;
}

export function nearestName(typed: string, names: readonly string[]): string | undefined {
  const near = names.map((name) => ({ name, distance: distanceOf(typed, name) }));
  const [best] = near.toSorted((a, b) => a.distance - b.distance);
  return best !== undefined && best.distance <= (typed.length < 4 ? 1 : Math.max(2, typed.length / 3))
    ? best.name
    : undefined;
}

/** A part of a name, or its letters in another order, is as near as a name with one wrong letter. */
function distanceOf(typed: string, name: string): number {
  const isPart = typed.length > 1 && (name.startsWith(typed) || name.endsWith(`.${typed}`));
  return isPart || sorted(typed) === sorted(name) ? 1 : editDistance(typed, name);
}

function sorted(text: string): string {
  return [...text].sort().join("");
}
