import { describe, expect, it } from "vitest";
import { createMetrics } from "../../src/ambient/metrics.ts";
import type { MaybePromise } from "../../src/domain/maybe-promise.ts";
import type { RateLimit, RateLimitState } from "../../src/domain/rate-limit.ts";
import { Unavailable } from "../../src/domain/unavailable.ts";
import { WindowTable } from "../../src/domain/window-table.ts";
import type { Permit, RateLimiter } from "../../src/ratelimit/limiter.ts";
import { LocalLimiter } from "../../src/ratelimit/local/local-limiter.ts";
import { type TakenLimits, takeAll, type WantedLimit } from "../../src/usecases/take-all.ts";
import { SeededRandom } from "../domain/seeded-random.ts";
import { TestClock } from "../support/test-clock.ts";

const durationMs = 60_000;
const apiId = "api";
const local = (limit: number): RateLimit => ({ mode: "local", limit, durationMs });
const strict = (limit: number): RateLimit => ({ mode: "strict", limit, durationMs });
const want = (subject: string, rule: RateLimit, cost = 1): WantedLimit => ({
  of: "key",
  name: subject,
  subject,
  rule,
  cost,
});
const remainingIn = ({ rateLimits }: Pick<TakenLimits, "rateLimits">) =>
  rateLimits?.map(({ state }) => state.remaining);

/** Counts both modes in this process; strict limits answer later, as from a ledger, and say what they were asked. */
function newLimiter({ missing = "", failing = "" } = {}) {
  const counting = new LocalLimiter(new WindowTable(100), { clock: new TestClock(0), metrics: createMetrics() });
  const asked: string[] = [];
  let underWay = 0;
  let underWayMost = 0;
  const later = async (subject: string, rule: RateLimit, cost: number | undefined): Promise<Permit> => {
    underWayMost = Math.max(underWayMost, ++underWay);
    await null;
    underWay--;
    if (subject === failing) throw new Unavailable("no answer");
    const permit = counting.take(subject, rule, cost);
    return subject === missing ? { ...gone, outcome: "missing" } : permit;
  };
  const limiter: RateLimiter = {
    take(subject, rule, cost): MaybePromise<Permit> {
      asked.push(subject);
      if (rule.mode === "local" && subject === failing) throw new Unavailable("full");
      return rule.mode === "strict" ? later(subject, rule, cost) : counting.take(subject, rule, cost);
    },
    peek: (subject, rule) => counting.peek(subject, rule),
  };
  const left = (...wanted: WantedLimit[]) =>
    wanted.map(({ subject, rule }) => (limiter.peek(subject, rule) as RateLimitState).remaining);
  return { limiter, left, asked, underWayMost: () => underWayMost };
}

const gone = { limit: 0, remaining: 0, resetMs: 0, commit() {}, release: () => gone };

describe("several limits", () => {
  it("are decided synchronously where all of them can", () => {
    const { limiter, left } = newLimiter();
    const wanted = [want("a", local(3), 2), want("b", local(9), 4)];
    const taken = takeAll(limiter, wanted, apiId) as TakenLimits;
    expect(taken).toMatchObject({ outcome: "admitted", reason: undefined });
    expect(remainingIn(taken)).toEqual([1, 5]);
    expect(left(...wanted)).toEqual([1, 5]);
  });

  it("ask all strict ones together, and take local ones last", async () => {
    const { limiter, asked, underWayMost } = newLimiter();
    await takeAll(
      limiter,
      [want("a", local(1)), want("b", strict(1)), want("c", local(1)), want("d", strict(1))],
      apiId,
    );
    expect(asked).toEqual(["b", "d", "a", "c"]);
    expect(underWayMost()).toBe(2);
  });

  it.each([
    ["a local one", [want("a", local(5), 6), want("b", strict(9), 2), want("c", local(9), 3)], 0, [5, 9, 9]],
    ["a strict one", [want("a", local(5), 5), want("b", strict(1), 2), want("c", strict(9), 3)], 1, [5, 1, 9]],
    ["the last one", [want("a", local(5), 5), want("b", strict(2), 2), want("c", local(2), 3)], 2, [5, 2, 2]],
    // Local ones are not asked then, but the first in order is named all the same.
    ["a local one before a strict one", [want("a", local(1), 2), want("b", strict(1), 2)], 0, [1, 1]],
    ["a strict one before a local one", [want("b", strict(1), 2), want("a", local(1), 2)], 0, [1, 1]],
  ] as const)("take nothing when %s refuses, and name it", async (_, wanted, refusedBy, remaining) => {
    const { limiter, left } = newLimiter();
    const taken = await takeAll(limiter, wanted, apiId);
    expect(taken).toMatchObject({ outcome: "limited", reason: { of: "key", name: wanted[refusedBy]?.name } });
    expect(remainingIn(taken)).toEqual(remaining);
    expect(left(...wanted)).toEqual(remaining);
  });

  it("let a cost of 0 pass where nothing is left, open no window for it, and tell the state", async () => {
    const { limiter, left, asked } = newLimiter();
    const empty = want("a", strict(1), 0);
    (await takeAll(limiter, [want("a", strict(1))], apiId)).commit();
    asked.length = 0;
    const taken = await takeAll(limiter, [empty, want("b", local(2), 0), want("c", local(2), 1)], apiId);
    expect(taken.outcome).toBe("admitted");
    expect(remainingIn(taken)).toEqual([0, 2, 1]);
    expect(asked).toEqual(["c"]);
    await taken.release();
    expect(left(empty, want("b", local(2)), want("c", local(2)))).toEqual([0, 2, 2]);
  });

  it("give everything back when the use was refused", async () => {
    const { limiter, left } = newLimiter();
    const wanted = [want("a", local(5), 5), want("b", strict(7), 4)];
    const taken = await takeAll(limiter, wanted, apiId);
    expect(left(...wanted)).toEqual([0, 3]);
    expect(remainingIn(await taken.release())).toEqual([5, 7]);
    expect(left(...wanted)).toEqual([5, 7]);
  });

  it.each([
    ["a strict one", "b"],
    ["a local one", "c"],
  ])("fail when %s cannot decide, and give back what the others took", async (_, failing) => {
    const { limiter, left } = newLimiter({ failing });
    const wanted = [want("a", strict(5), 2), want("b", strict(5), 2), want("c", local(5), 2), want("d", local(5), 2)];
    await expect(async () => takeAll(limiter, wanted, apiId)).rejects.toThrow(Unavailable);
    expect(left(want("a", strict(5)), want("d", local(5)))).toEqual([5, 5]);
  });

  it("are missing when one is, although another refuses", async () => {
    const { limiter, left } = newLimiter({ missing: "b" });
    const wanted = [want("a", strict(5), 2), want("b", strict(5)), want("c", strict(5), 6)];
    expect(await takeAll(limiter, wanted, apiId)).toMatchObject({ outcome: "missing", reason: undefined });
    expect(left(want("a", strict(5)))).toEqual([5]);
  });

  it("count exactly what was admitted and not given back, whatever is asked (seeds 1 to 300)", async () => {
    for (let seed = 1; seed <= 300; seed++) {
      const random = new SeededRandom(seed);
      const { limiter, left } = newLimiter();
      const limits = Array.from({ length: random.integer(1, 6) }, (_, i) =>
        want(`s${i}`, random.chance(0.5) ? strict(random.integer(1, 30)) : local(random.integer(1, 30))),
      );
      const used = limits.map(() => 0);
      const take = async () => {
        const wanted = limits.map((limit) => ({ ...limit, cost: random.integer(0, 12) }));
        const taken = await takeAll(limiter, wanted, apiId);
        if (taken.outcome !== "admitted") return;
        if (random.chance(0.3)) await taken.release();
        else {
          taken.commit();
          wanted.forEach(({ cost }, i) => {
            used[i] = (used[i] as number) + cost;
          });
        }
      };
      await Promise.all(Array.from({ length: 20 }, take));
      const expected = limits.map(({ rule }, i) => rule.limit - (used[i] as number));
      expect(left(...limits), `seed ${seed}`).toEqual(expected);
      expect(Math.min(...expected), `seed ${seed}`).toBeGreaterThanOrEqual(0);
    }
  });
});
