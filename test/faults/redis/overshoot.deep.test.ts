import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { LatchkeyClient } from "../../../src/sdk/index.ts";
import { endsOutOfRange, type LoggedAnswer, latenciesOf, oddAnswers } from "../../support/answer-log.ts";
import { type HolderKind, makeLimited, mixedCosts } from "../../support/limited.ts";
import { type LinkedFleet, startLinkedFleet } from "../../support/linked-fleet.ts";
import { type PacedLoadOptions, pacedLoad } from "../../support/paced-load.ts";
import { rawClient } from "../../support/raw-client.ts";
import { RedisServer } from "../../support/redis-server.ts";
import { createTestDatabase, hasPostgres } from "../../support/test-database.ts";
import { hasRedis } from "../../support/test-redis.ts";
import { testRootKey } from "../../support/test-root-key.ts";
import { countSharedWindows, overshootOf, replicasOverLimit, type WindowRule } from "../../support/window-log.ts";

/* The short form of `npm run bench:local`. */

const roundTripsMs = [2, 2, 40, 40, 80, 80];
const replicas = roundTripsMs.length;
/** Between the windows: each opens with the first use after the one before. */
const gapMs = 50;
let limits = 0;
const undo: (() => unknown)[] = [];
let linked: LinkedFleet;

interface Load extends Pick<PacedLoadOptions, "perSecond" | "ms" | "costs"> {
  readonly baseUrls?: readonly string[];
  readonly of?: HolderKind;
}

async function load(rule: WindowRule, given: Load): Promise<LoggedAnswer[]> {
  const { baseUrls = linked.fleet.baseUrls, of = "key", ...pace } = given;
  const clients = baseUrls.map((baseUrl) => rawClient({ baseUrl, rootKey: testRootKey }));
  const key = await makeLimited(clients[0] as LatchkeyClient, { ...rule, of, isStrict: false }, `${++limits}`);
  // So that every replica knows it. A busy machine may need several times.
  const learn = () => pacedLoad({ baseUrls, key, costs: [0], perSecond: 200, ms: 100 });
  while (oddAnswers(await learn()).length > 0);
  const log = await pacedLoad({ baseUrls, key, ...pace });
  expect(oddAnswers(log)).toEqual([]);
  expect(endsOutOfRange(log, rule)).toEqual([]);
  expect(replicasOverLimit(log, rule)).toEqual([]);
  return log;
}

/** False on a busy machine: there the results show how busy it is, not how well replicas are synchronised. */
function keptUp(log: readonly LoggedAnswer[]): boolean {
  const latencies = latenciesOf(log);
  const isQuick = (latencies[Math.floor(latencies.length * 0.95)] ?? 0) < 100;
  if (!isQuick) console.warn("the machine did not keep up with the load: only the bounds were judged");
  return isQuick;
}

describe.runIf(hasPostgres && hasRedis)(
  `of ${replicas} replicas, ${roundTripsMs.join(", ")} ms from Redis,`,
  { retry: 0 },
  () => {
    beforeAll(async () => {
      const redis = await RedisServer.start();
      undo.push(() => redis.remove());
      const atEnd = (step: () => unknown) => void undo.push(step);
      linked = await startLinkedFleet({ databaseUrl: await createTestDatabase(), redis, roundTripsMs, atEnd });
      // Not to measure how processes begin.
      await load({ limit: 1000, durationMs: 60_000 }, { perSecond: 120, ms: 1000 });
    });
    afterAll(async () => {
      for (const step of undo.reverse()) await step();
    });

    // At once, since each has a key of its own.
    describe.concurrent("with Redis there,", () => {
      const loads = [
        { limit: 100, durationMs: 1000, perSecond: 300, windows: 6, of: "key" },
        { limit: 1000, durationMs: 10_000, perSecond: 300, windows: 1, of: "nobody" },
        { limit: 1000, durationMs: 5000, perSecond: 150, windows: 2, of: "owner", costs: mixedCosts },
      ] as const;
      it.each(loads)(
        "all let $limit of $of pass in $durationMs ms, and not many more, at $perSecond/s",
        async (given) => {
          const { limit, durationMs, perSecond, windows, of, costs = [1] } = { costs: undefined, ...given };
          const log = await load(given, { perSecond, ms: windows * (durationMs + gapMs) + 1000, of, costs });
          const complete = countSharedWindows(log, given).filter(({ isComplete }) => isComplete);
          const { max, mean } = overshootOf(complete, limit);
          console.log(
            `${limit} in ${durationMs} ms at ${perSecond}/s: +${max.toFixed(1)} % at most, +${mean.toFixed(1)} %`,
          );

          if (keptUp(log)) expect(complete.length).toBeGreaterThanOrEqual(windows);
          for (const { admitted, refused, onOneMax } of complete) {
            // A replica refuses because of expected counts of the others only until they have answered. On a machine that
            // stands still for parts of a window, that can last until the window's end.
            if (keptUp(log) && admitted + refused >= 1.5 * limit)
              expect(admitted).toBeGreaterThan(limit - Math.max(...costs));
            expect(admitted).toBeLessThanOrEqual(replicas * limit);
            expect(onOneMax).toBeLessThanOrEqual(limit);
          }
          // Only the bound above is promised. This one shows what synchronising achieves.
          if (keptUp(log)) expect(mean).toBeLessThan(100);
        },
      );

      it.each([
        [1, 0, "nobody"],
        [5, 2, "key with several"],
        [100, 4, "owner"],
      ] as const)("one lets exactly %i pass in each window while no other is used", async (limit, replica, of) => {
        const rule = { limit, durationMs: 1000 };
        const baseUrls = [linked.fleet.replica(replica).baseUrl];
        const log = await load(rule, {
          baseUrls,
          of,
          perSecond: Math.max(25, 1.5 * limit),
          ms: 4 * (1000 + gapMs) + 500,
        });
        // A window without a refusal had too few requests.
        const full = countSharedWindows(log, rule).filter(({ isComplete, refused }) => isComplete && refused > 0);
        if (keptUp(log)) expect(full.length).toBeGreaterThanOrEqual(3);
        expect(full.map(({ admitted }) => admitted)).toEqual(full.map(() => limit));
      });
    });

    it("all go far beyond the limit once they cannot tell each other: the count above can fail", async () => {
      for (const link of linked.links) {
        link.refusing = true;
        link.cutAll();
      }
      const rule = { limit: 100, durationMs: 1000 };
      const log = await load(rule, { perSecond: 480, ms: 1500 });
      const [first] = countSharedWindows(log, rule);
      expect(first?.isComplete).toBe(true);
      if (keptUp(log)) expect(first?.admitted).toBeGreaterThan(3 * rule.limit);
      expect(first?.admitted).toBeLessThanOrEqual(replicas * rule.limit);
      // Each replica has let about 80 pass.
      if (keptUp(log)) expect(replicasOverLimit(log, { ...rule, limit: 40 })).toHaveLength(replicas);
    });
  },
);
