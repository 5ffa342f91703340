import { aroundEach, vi } from "vitest";
import { watchProcessors } from "./processors.ts";
import { runningTest } from "./test-end.ts";

// In every test file: what a test starts is stopped with that very test, also where several run side by side.
aroundEach((runTest, context) => runningTest.run(context, runTest));

/** With less of the processor time that was wanted, a missed deadline says nothing about the service. */
const enoughPercent = 95;

/** Deadlines of the service that were missed, and those of tests, which say "in time". */
const wasLate = /SERVICE_UNAVAILABLE|cannot decide right now|did not answer|is away|in time|timed out/;

// A deep test that missed a deadline while the machine's host withheld the processors is run again, after a pause. Every failure
// of a test that runs alone is taken for that; of all others, one that says so. In `npm test` no test has a retry.
aroundEach(async (runTest, { task }) => {
  const processors = watchProcessors();
  const condition = ({ message, actual }: { message: string; actual?: unknown }) => {
    const percent = Math.round(100 * processors.share());
    if (percent >= enoughPercent) return false;
    if (task.file.projectName !== "alone" && !wasLate.test(`${message} ${actual}`)) return false;
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
