import { defineConfig } from "vitest/config";

/** The soak is not part of the test command: see `tools/soak.ts`. */
export default defineConfig({
  test: {
    include: ["test/soak/**/*.soak.ts"],
    globalSetup: "test/support/global-setup.ts",
    setupFiles: "test/support/set-up-file.ts",
    testTimeout: 24 * 60 * 60 * 1000,
    hookTimeout: 60_000,
    fileParallelism: false,
    disableConsoleIntercept: true,
  },
});
