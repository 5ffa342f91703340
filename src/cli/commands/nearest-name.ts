/** The name that was probably meant, or undefined if none is near. */
export function nearestName(typed: string, names: readonly string[]): string | undefined {
  const near = names.map((name) => ({ name, distance: editDistance(typed, name) }));
  const [best] = near.toSorted((a, b) => a.distance - b.distance);
  return best !== undefined && best.distance <= (typed.length < 4 ? 1 : Math.max(2, typed.length / 3))
    ? best.name
    : undefined;
}

/** A sentence to put behind an error, or nothing. */
export function suggest(typed: string, names: readonly string[], before = ""): string {
  const name = nearestName(typed, names);
  return name === undefined ? "" : `; did you mean ${before}${name}?`;
}

/** How many letters have to be added, removed or replaced. */
function editDistance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, i) => i);
  for (let i = 0; i < from.length; i++) {
    const next = [i + 1];
    for (let j = 0; j < to.length; j++) {
      const replaced = (row[j] as number) + (from[i] === to[j] ? 0 : 1);
      next.push(Math.min(replaced, (row[j + 1] as number) + 1, (next[j] as number) + 1));
    }
    row = next;
  }
  return row[to.length] as number;
}
