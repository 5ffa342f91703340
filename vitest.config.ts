import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import { isDeep } from "./test/support/deep.ts";
import { Report } from "./test/support/report.ts";

const root = import.meta.dirname;
const deepOnly = "test/**/*.deep.test.ts";

/** Deep tests that hold the service to a deadline or a bound of memory, which it cannot keep when others load the machine. */
const alone = [
  "test/faults/{hostile-connections,hostile-streams,overload}.deep.test.ts",
  "test/faults/{hostile-http1,hostile-tls}.test.ts",
  "test/faults/edges/{news.test,news-redis.deep.test}.ts",
  "test/faults/postgres/replicas.deep.test.ts",
  "test/faults/redis/revocation.test.ts",
  "test/faults/strict/{coordinators,faults}.deep.test.ts",
  "test/hostile/{attack,costly-bodies}.deep.test.ts",
  "test/soak/regions/regions.deep.test.ts",
];

/** They replace modules, which files that share them would see. */
const isolated = ["test/link/grpc-stream.test.ts", "test/rpc/fast-path/read-once.test.ts"];

/** One more than cores of the machines that we think of: tests that start processes wait now and then. */
const maxWorkers = 3;

/** They take long. One that began last would keep one core busy and the other waiting. */
const long = [
  "test/contract/store.test.ts",
  "test/e2e/workers.test.ts",
  "test/contract/broken-stores.test.ts",
  "test/faults/edges/news.test.ts",
  "test/faults/edges/uses.test.ts",
  "test/e2e/shutdown.test.ts",
  "test/faults/crash.test.ts",
  "test/faults/spending.test.ts",
  "test/cli/copy.test.ts",
  "test/e2e/first-start.test.ts",
  "test/domain/permit-model/permit-model.test.ts",
  "test/faults/postgres/crash-replicas.test.ts",
  "test/life/life.test.ts",
];

/** The long ones first. Vitest knows which they are only where it has run before, and takes the largest files elsewhere. */
class LongOnesFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const isLong = ({ moduleId }: TestSpecification) => long.some((file) => moduleId.endsWith(`/${file}`));
    return [...sorted.filter(isLong), ...sorted.filter((spec) => !isLong(spec))];
  }
}

/** Files that `npm test` runs too, at a smaller size. */
function filesWithTwoSizes(): string[] {
  const files = readdirSync(join(root, "test"), { recursive: true, encoding: "utf8" }).map((name) => `test/${name}`);
  const hasTwoSizes = (file: string) => /support\/deep\.ts"|\boneEngine\b/.test(readFileSync(join(root, file), "utf8"));
  return files.filter((file) => file.endsWith(".test.ts") && !file.endsWith(".deep.test.ts") && hasTwoSizes(file));
}

/**
 * A deep test that missed a deadline is run again if the machine did not get its processors from its host meanwhile
 * (set-up-file.ts). Tests of a count that holds on every machine say `retry: 0`.
 */
const retry = { count: 3, delay: 45_000 };

/** One group after the other: what keeps the processors busy, what mostly waits, and what must be alone. */
const deepProjects = () => [
  project("full size", 0, { include: filesWithTwoSizes(), exclude: alone, maxWorkers: 2 }),
  project("deep", 1, { include: [deepOnly], exclude: alone, maxWorkers: 2 }),
  project("alone", 2, { include: alone, fileParallelism: false }),
];

function project(name: string, groupOrder: number, test: object) {
  return { extends: true as const, test: { name, retry, sequence: { groupOrder }, ...test } };
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
      ? deepProjects()
      : [
          // Files share a process and the modules that they import, which saves a tenth of the time.
          {
            extends: true,
            test: {
              name: "test",
              include: ["test/**/*.test.ts"],
              exclude: [deepOnly, ...isolated],
              isolate: false,
              maxWorkers,
            },
          },
          { extends: true, test: { name: "isolated", include: isolated, maxWorkers } },
        ],
  },
});
