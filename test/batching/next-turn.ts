/** Resolves when every promise that could go on has done so: nothing is waited for but the event loop's turn. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
