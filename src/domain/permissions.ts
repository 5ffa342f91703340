/*
 * What a root key may do, as a list of texts: `keys.read` allows that alone, `keys.*` everything that begins with `keys.`,
 * `*` everything.
 */

/** Whether a list covers a permission, or everything that a pattern such as `keys.*` stands for. */
export function covers(granted: readonly string[], wanted: string): boolean {
  return granted.some((one) => one === wanted || one === "*" || (one.endsWith(".*") && isBelow(one, wanted)));
}

function isBelow(pattern: string, wanted: string): boolean {
  return wanted.startsWith(pattern.slice(0, -1));
}
