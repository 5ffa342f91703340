/** Levenshtein's: how many characters to insert, delete or replace. */
export function editDistance(from: string, to: string): number {
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
