import { defineConfig } from "vitest/config";

/** The soak is not part of the test command: `npm run soak -- <minutes>`, `npm run soak -- regions`. */
export default defineConfig({
  test: {
    include: ["test/soak/**/*.soak.ts"],
    globalSetup: "test/support/global-setup.ts",
    testTimeout: 24 * 60 * 60 * 1000,
    hookTimeout: 60_000,
    fileParallelism: false,
    disableConsoleIntercept: true,
  },
});
