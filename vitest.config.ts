import { defineConfig } from "vitest/config";

/** They hold the service to a deadline or a bound of memory, which it cannot keep when others load the machine. */
const alone = [
  "test/faults/{damaged-file,hostile-*,lost-file,overload}.test.ts",
  "test/faults/postgres/{database-up,lane,outage,permit-locks,replicas,slow}.test.ts",
  "test/faults/redis/*.test.ts",
  "test/faults/strict/{faults,ledger-clock-set}.test.ts",
  "test/hostile/{attack,cuts}.test.ts",
];

export default defineConfig({
  test: {
    globalSetup: "test/support/global-setup.ts",
    // Many tests start processes and wait for them; a deadline is there to end a hang, not to measure.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    projects: [
      {
        extends: true,
        test: {
          name: "all",
          include: ["test/**/*.test.ts"],
          exclude: alone,
          // With more, tests on two cores delay each other beyond the service's own deadlines, and get 503s.
          maxWorkers: 2,
        },
      },
      // After the others and one at a time.
      {
        extends: true,
        test: { name: "alone", include: alone, fileParallelism: false, sequence: { groupOrder: 1 } },
      },
    ],
  },
});
