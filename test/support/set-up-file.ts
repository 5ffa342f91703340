import { aroundEach, vi } from "vitest";
import { watchProcessors } from "./processors.ts";
import { runningTest } from "./test-end.ts";

// In every test file: what a test starts is stopped with that very test, also where several run side by side.
aroundEach((runTest, context) => runningTest.run(context, runTest));

/** With less of the processor time that was wanted, a missed deadline says nothing about the service. */
const enoughPercent = 85;

// A test of a deadline (`retry` in the configuration) that failed while the machine's host withheld the processors is run again.
aroundEach(async (runTest, { task }) => {
  const processors = watchProcessors();
  const condition = ({ message }: { message: string }) => {
    const percent = Math.round(100 * processors.share());
    if (percent >= enoughPercent) return false;
    console.log(`once more: with ${percent} % of the processors, "${task.name}" failed: ${message}`);
    return true;
  };
  if (typeof task.retry === "object") Object.assign(task, { retry: { ...task.retry, condition } });
  await runTest();
});

// What is waited for comes at once, or late on a slow machine: a wait ends a hang, and measures nothing.
const { waitFor } = vi;
vi.waitFor = (callback, options) =>
  waitFor(callback, typeof options === "number" ? options : { timeout: 60_000, ...options });
