/** Calls `read` once for each key. Its answer is kept as long as the key is used elsewhere. */
export function memoized<Key extends object, Value>(read: (key: Key) => Value): (key: Key) => Value {
  const known = new WeakMap<Key, Value>();
  return (key) => {
    const found = known.get(key);
    if (found !== undefined || known.has(key)) return found as Value;
    const value = read(key);
    known.set(key, value);
    return value;
  };
}
