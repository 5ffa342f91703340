import { defineConfig } from "vitest/config";

/** The soak is not part of the test command: `npm run soak -- <minutes>`, `npm run soak -- news`, `npm run soak -- regions`. */
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
