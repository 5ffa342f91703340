import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** They hold the service to a deadline or a bound of memory, which it cannot keep when others load the machine. */
const alone = [
  "test/faults/{hostile-connections,overload}.test.ts",
  "test/faults/edges/{news,news-redis}.test.ts",
  "test/faults/postgres/replicas.test.ts",
  "test/faults/redis/revocation.test.ts",
  "test/faults/strict/{coordinators,faults}.test.ts",
  "test/hostile/attack.test.ts",
  "test/soak/regions/regions.test.ts",
];

/**
 * They hold the service to a deadline too, and wait for most of their time: for time-outs, outages and windows. Two of
 * them at a time leave the processors idle often enough, but beside others they would be late.
 */
const inPairs = [
  "test/doctor/{coordinators,postgres,redis,service}.test.ts",
  "test/e2e/proxies.test.ts",
  "test/faults/{damaged-file,hostile-http1,hostile-streams,hostile-tls,lost-file}.test.ts",
  "test/faults/edges/held-commit.test.ts",
  "test/faults/postgres/{database-up,frozen-primary,index-build,lane,outage,permit-locks,proxied-replicas,slow}.test.ts",
  "test/faults/redis/{outage,overshoot,restart}.test.ts",
  "test/faults/strict/ledger-clock-set.test.ts",
  "test/hostile/{attack-findings,cuts}.test.ts",
  "test/store/postgres/distance.test.ts",
];

/**
 * A test that missed a deadline is run again if the machine did not get its processors from its host meanwhile
 * (set-up-file.ts). Those of a count that holds on every machine say `retry: 0`. A machine that was idle gets more.
 */
const retry = { count: 3, delay: 45_000 };

/** They take ten seconds or more. One that began last would keep one core busy and the other waiting. */
const long = [
  "test/contract/broken-stores.test.ts",
  "test/contract/store.test.ts",
  "test/domain/permit-model/permit-model.test.ts",
  "test/e2e/lost-region.test.ts",
  "test/e2e/proxies.test.ts",
  "test/e2e/threads.test.ts",
  "test/explain/agreement.test.ts",
  "test/faults/crash.test.ts",
  "test/faults/edges/held-commit.test.ts",
  "test/faults/edges/uses.test.ts",
  "test/faults/postgres/crash-replicas.test.ts",
  "test/faults/postgres/shared-balances.test.ts",
  "test/faults/postgres/slow.test.ts",
  "test/faults/redis/outage.test.ts",
  "test/faults/redis/overshoot.test.ts",
  "test/faults/strict/ledger-and-clocks.test.ts",
  "test/faults/strict/never-over.test.ts",
  "test/hostile/attack-findings.test.ts",
  "test/life/life.test.ts",
  "test/store/postgres/distance.test.ts",
];

/** The long ones first. Vitest knows which they are only where it has run before, and takes the largest files elsewhere. */
class LongOnesFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const isLong = ({ moduleId }: TestSpecification) => long.some((file) => moduleId.endsWith(`/${file}`));
    return [...sorted.filter(isLong), ...sorted.filter((spec) => !isLong(spec))];
  }
}

export default defineConfig({
  test: {
    globalSetup: "test/support/global-setup.ts",
    setupFiles: "test/support/set-up-file.ts",
    sequence: { sequencer: LongOnesFirst },
    // Tests of one file that run side by side mostly wait.
    maxConcurrency: 10,
    // Many tests start processes and wait for them; a deadline is there to end a hang, not to measure. A machine that others use
    // too can be five times slower than it is.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 60_000 } },
    retry,
    projects: [
      {
        extends: true,
        test: {
          name: "all",
          include: ["test/**/*.test.ts"],
          exclude: [...alone, ...inPairs],
          // With more, tests on two cores delay each other beyond the service's own deadlines, and get 503s.
          maxWorkers: 2,
        },
      },
      // After the others.
      {
        extends: true,
        test: { name: "in pairs", include: inPairs, maxWorkers: 2, sequence: { groupOrder: 1 } },
      },
      // At the end, one at a time.
      {
        extends: true,
        test: { name: "alone", include: alone, fileParallelism: false, sequence: { groupOrder: 2 } },
      },
    ],
  },
});
