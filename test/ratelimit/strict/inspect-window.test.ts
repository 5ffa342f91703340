import { describe, expect, it } from "vitest";
import { Unavailable } from "../../../src/domain/unavailable.ts";
import { queue, rule, setUpLimiter, takeNow, timeoutMs } from "./limiter-fixture.ts";

/** The outcome, as soon as there is one. */
function watch<Value>(work: Promise<Value>) {
  const watched: { value?: Value; error?: unknown } = {};
  work.then(
    (value) => Object.assign(watched, { value }),
    (error: unknown) => Object.assign(watched, { error }),
  );
  return watched;
}

describe("a strict limit that is inspected", () => {
  it("stands as the ledger says, once nothing is held anywhere", async () => {
    const { limiter, channel } = setUpLimiter();
    const inspected = watch(limiter.inspect("k", rule, 1));
    await channel.grant({ left: 3, outstanding: 7 });
    await channel.grant({ left: 8, outstanding: 0, endsAtMs: 1_800_000_000_007 });
    expect(inspected.value).toEqual({ limit: 10_000, remaining: 8, resetMs: 1_800_000_000_007 });
    expect([channel.sent, channel.inspected]).toEqual([[], ["k", "k"]]);
  });

  it("is untouched if no window is open", async () => {
    const { limiter, channel, clock } = setUpLimiter();
    const inspected = watch(limiter.inspect("k", rule, 1));
    await channel.grant({ left: 0, endsInMs: 0 });
    expect(inspected.value).toEqual({ limit: 10_000, remaining: 10_000, resetMs: clock.nowMs() + 60_000 });
  });

  it("is asked for as long as a verification waits if what others hold decides, else for a moment", async () => {
    for (const [cost, waitMs] of [
      [5, timeoutMs],
      [3, 50],
      [11, 50],
    ] as const) {
      const { limiter, channel, pass } = setUpLimiter();
      const inspected = watch(limiter.inspect("k", rule, cost));
      let passedMs = 0;
      for (; inspected.value === undefined && passedMs < 1000; passedMs += 5) {
        if (channel.underWay > 0) await channel.grant({ left: 3, outstanding: 7 });
        await pass(5);
      }
      expect(inspected.value).toMatchObject({ remaining: 3 });
      expect(passedMs).toBeGreaterThanOrEqual(waitMs);
      expect(passedMs).toBeLessThan(waitMs + 40);
    }
  });

  it("gets back what this replica holds", async () => {
    const { limiter, channel } = setUpLimiter();
    queue(limiter, "k", 5);
    await channel.grant({ granted: 9, left: 0, outstanding: 9 });
    void limiter.inspect("k", rule, 1);
    expect(channel.sent.at(-1)).toMatchObject({ gen: 1, waiting: [], returned: 4 });
  });

  it("refuses no longer what was refused because others held it", async () => {
    const { limiter, channel, pass } = setUpLimiter();
    const refused = queue(limiter, "k", 9);
    while (refused.said === "waits") {
      if (channel.underWay > 0) await channel.grant({ left: 0, outstanding: 9 });
      await pass(5);
    }
    expect([refused.said, takeNow(limiter, "k", 9).outcome]).toEqual(["limited", "limited"]);
    void limiter.inspect("k", rule, 9);
    await channel.grant({ left: 9, outstanding: 0 });
    const again = queue(limiter, "k", 9);
    await channel.grant({ granted: 9, left: 0, outstanding: 9 });
    expect(again.said).toBe("admitted");
  });

  it("is missing if it is gone, and unknown if the ledger does not answer", async () => {
    const { limiter, channel } = setUpLimiter();
    const gone = watch(limiter.inspect("k", rule, 1));
    await channel.answer({ outcome: "missing" });
    expect("value" in gone && gone.value === undefined).toBe(true);
    const lost = watch(limiter.inspect("k", rule, 1));
    await channel.lose();
    const failed = watch(limiter.inspect("k", rule, 1));
    await channel.answer({ outcome: "failed", reason: "damaged" });
    expect([lost.error, failed.error]).toEqual([expect.any(Unavailable), expect.any(Unavailable)]);
  });
});
