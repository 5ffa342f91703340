import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    globalSetup: "test/support/global-setup.ts",
    include: ["test/**/*.test.ts"],
    // Fault tests start processes and wait for them; a deadline is there to end a hang, not to measure.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    reporters: ["default"],
  },
});
