/** A value, or the promise of one where somebody has to be waited for. Most answers come from memory: they cost no promise. */
export type AtOnce<Value> = Value | Promise<Value>;

/** Goes on with the value: now if it is here, otherwise when it is. */
export function goOn<Value, Next>(value: AtOnce<Value>, step: (value: Value) => AtOnce<Next>): AtOnce<Next> {
  return value instanceof Promise ? value.then(step) : step(value);
}
