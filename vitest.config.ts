import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import { isDeep } from "./test/support/deep.ts";
import { Report } from "./test/support/report.ts";

const root = import.meta.dirname;
const deepOnly = "test/**/*.deep.test.ts";

/** Deep tests that hold the service to a deadline or a bound of memory, which it cannot keep when others load the machine. */
const alone: string[] = [];

/** They take long. One that began last would keep one core busy and the other waiting. */
const long: string[] = [];

/** The long ones first. Vitest knows which they are only where it has run before, and takes the largest files elsewhere. */
class LongOnesFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const isLong = ({ moduleId }: TestSpecification) => long.some((file) => moduleId.endsWith(`/${file}`));
    return [...sorted.filter(isLong), ...sorted.filter((spec) => !isLong(spec))];
  }
}

/** Files that only `npm run test:deep` runs, and those that it runs at another size. */
function deepFiles(): string[] {
  const files = readdirSync(join(root, "test"), { recursive: true, encoding: "utf8" }).map((name) => `test/${name}`);
  const hasTwoSizes = (file: string) => readFileSync(join(root, file), "utf8").includes('support/deep.ts"');
  return files.filter((file) => file.endsWith(".deep.test.ts") || (file.endsWith(".test.ts") && hasTwoSizes(file)));
}

export default defineConfig({
  test: {
    globalSetup: "test/support/global-setup.ts",
    setupFiles: "test/support/set-up-file.ts",
    reporters: ["default", new Report()],
    sequence: { sequencer: LongOnesFirst },
    // Tests of one file that run side by side mostly wait.
    maxConcurrency: 10,
    // Many tests start processes and wait for them; a deadline is there to end a hang, not to measure. A machine that others use
    // too can be five times slower than it is.
    testTimeout: 600_000,
    hookTimeout: 600_000,
    expect: { poll: { timeout: 120_000 } },
    projects: isDeep
      ? [
          {
            extends: true,
            test: { name: "deep", include: deepFiles(), exclude: alone, maxWorkers: 2, retry: deepRetry() },
          },
          // At the end, one at a time.
          {
            extends: true,
            test: {
              name: "alone",
              include: alone,
              fileParallelism: false,
              retry: deepRetry(),
              sequence: { groupOrder: 1 },
            },
          },
        ]
      : [{ extends: true, test: { name: "test", include: ["test/**/*.test.ts"], exclude: [deepOnly], maxWorkers: 2 } }],
  },
});

/**
 * A deep test that missed a deadline is run again if the machine did not get its processors from its host meanwhile
 * (set-up-file.ts). Tests of a count that holds on every machine say `retry: 0`.
 */
function deepRetry() {
  return { count: 3, delay: 45_000 };
}
