/*
 * What the holder of a root key or of a key may do, as a list of texts: `keys.read` allows that alone, `keys.*` everything
 * that begins with `keys.`, `*` everything.
 */

/** Whether a list covers a permission, or everything that a pattern such as `keys.*` stands for. */
export function covers(granted: readonly string[], wanted: string): boolean {
  for (const one of granted) if (one === wanted || coversBelow(one, wanted)) return true;
  return false;
}

const star = "*".charCodeAt(0);
const dot = ".".charCodeAt(0);

/** Character by character: a query may compare 50 permissions with 100, and most differ at the beginning. */
function coversBelow(pattern: string, wanted: string): boolean {
  const last = pattern.length - 1;
  if (pattern.charCodeAt(last) !== star) return false;
  if (last === 0) return true;
  if (pattern.charCodeAt(last - 1) !== dot || wanted.length < last) return false;
  for (let at = 0; at < last; at++) if (pattern.charCodeAt(at) !== wanted.charCodeAt(at)) return false;
  return true;
}

export const permissionLengthMax = 128;

const namePattern = /^[A-Za-z0-9_.:-]+$/;

/** Whether a key can be asked for it: one permission. */
export function isPermissionName(text: string): boolean {
  return text.length <= permissionLengthMax && namePattern.test(text);
}
