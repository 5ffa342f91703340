/** A value, or a promise of it if it has to be waited for. Most answers come from memory and need no promise. */
export type MaybePromise<Value> = Value | Promise<Value>;

/** Calls `step` with the value: synchronously if the value is there, otherwise when its promise resolves. */
export function andThen<Value, Next>(
  value: MaybePromise<Value>,
  step: (value: Value) => MaybePromise<Next>,
): MaybePromise<Next> {
  return value instanceof Promise ? value.then(step) : step(value);
}

/** All values, in their order: synchronously if all of them are there. */
export function allOf<Value>(values: readonly MaybePromise<Value>[]): MaybePromise<readonly Value[]> {
  for (const value of values) if (value instanceof Promise) return Promise.all(values);
  return values as readonly Value[];
}

/** The value of `done`, or of `failed` if `start`, its promise or `done` fails. Synchronous if `start` is. */
export function mapOutcome<Value, Next>(
  start: () => MaybePromise<Value>,
  done: (value: Value) => Next,
  failed: (thrown: unknown) => Next,
): MaybePromise<Next> {
  try {
    const value = start();
    return value instanceof Promise ? value.then(done).catch(failed) : done(value);
  } catch (thrown) {
    return failed(thrown);
  }
}
