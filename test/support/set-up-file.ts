import { aroundEach, vi } from "vitest";
import { runningTest } from "./test-end.ts";

// In every test file: what a test starts is stopped with that very test, also where several run side by side.
aroundEach((runTest, context) => runningTest.run(context, runTest));

// What is waited for comes at once, or late on a slow machine: a wait ends a hang, and measures nothing.
const { waitFor } = vi;
vi.waitFor = (callback, options) =>
  waitFor(callback, typeof options === "number" ? options : { timeout: 60_000, ...options });
