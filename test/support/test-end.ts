import { AsyncLocalStorage } from "node:async_hooks";
import type { TestContext } from "vitest";

/** The test that the calling code runs in. */
export const runningTest = new AsyncLocalStorage<TestContext>();

/**
 * Calls `undo` when the test that called this is over. Vitest's own `onTestFinished` takes the test that began last for
 * the caller, which is wrong where tests run side by side.
 */
export function atTestEnd(undo: () => unknown): void {
  const test = runningTest.getStore();
  if (test === undefined) throw new Error("what is undone at the end of a test begins in a test");
  test.onTestFinished(async () => void (await undo()));
}
