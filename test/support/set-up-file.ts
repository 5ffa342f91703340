import { aroundEach } from "vitest";
import { runningTest } from "./test-end.ts";

// In every test file: what a test starts is stopped with that very test, also where several run side by side.
aroundEach((runTest, context) => runningTest.run(context, runTest));
