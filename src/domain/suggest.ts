/** A sentence to put behind an error: the name that was probably meant. Nothing if none is near. */
export function suggest(typed: string, names: readonly string[], before = ""): string {
  const name = nearestName(typed, names);
  return name === undefined ? "" : `; did you mean ${before}${name}?`;
}

/** `distanceMaxOf`: how many characters may differ from a name. */
export function nearestName(
  typed: string,
  names: readonly string[],
  distanceMaxOf: (name: string) => number = () => (typed.length < 4 ? 1 : Math.max(2, typed.length / 3)),
): string | undefined {
  const near = names.map((name) => ({ name, distance: distanceOf(typed, name) }));
  near.sort((a, b) => a.distance - b.distance);
  return near.find(({ name, distance }) => distance <= distanceMaxOf(name))?.name;
}

/** A part of a name, or its letters in another order, is as near as a name with one wrong letter. */
function distanceOf(typed: string, name: string): number {
  const isPart = typed.length > 1 && (name.startsWith(typed) || name.endsWith(`.${typed}`));
  return isPart || sorted(typed) === sorted(name) ? 1 : editDistance(typed, name);
}

function sorted(text: string): string {
  return [...text].sort().join("");
}

/** Levenshtein's: how many characters to insert, delete or replace. */
function editDistance(from: string, to: string): number {
  let distance = to.length;
  // row[j] is the distance between the part of `from` read so far and the first j characters of `to`.
  let row = Array.from({ length: to.length + 1 }, (_, j) => j);
  for (const character of from) {
    let diagonal = 0;
    row = row.map((above, j) => {
      const replaced = diagonal + (character === to[j - 1] ? 0 : 1);
      diagonal = above;
      distance = j === 0 ? above + 1 : Math.min(replaced, above + 1, distance + 1);
      return distance;
    });
  }
  return distance;
}
