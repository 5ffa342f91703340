/** A value, or a promise of it if it has to be waited for. Most answers come from memory and need no promise. */
export type AtOnce<Value> = Value | Promise<Value>;

/** Calls `step` with the value: synchronously if the value is there, otherwise when its promise resolves. */
export function goOn<Value, Next>(value: AtOnce<Value>, step: (value: Value) => AtOnce<Next>): AtOnce<Next> {
  return value instanceof Promise ? value.then(step) : step(value);
}
