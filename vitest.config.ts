import { defineConfig } from "vitest/config";

const faults = ["test/faults/**/*.test.ts", "test/hostile/*.test.ts"];

export default defineConfig({
  test: {
    globalSetup: "test/support/global-setup.ts",
    // Many tests start processes and wait for them; a deadline is there to end a hang, not to measure.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    maxWorkers: 2,
    projects: [
      { extends: true, test: { name: "all", include: ["test/**/*.test.ts"], exclude: faults } },
      // After the others and one at a time: they load the machine, and some of them hold the service to a deadline.
      {
        extends: true,
        test: { name: "faults", include: faults, fileParallelism: false, sequence: { groupOrder: 1 } },
      },
    ],
  },
});
