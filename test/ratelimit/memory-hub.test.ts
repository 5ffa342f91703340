import { describe, expect, it } from "vitest";
import type { WindowReport } from "../../src/domain/shared-window.ts";
import { freeStandingSubject } from "../../src/domain/subject.ts";
import { MemoryHub } from "../../src/ratelimit/local/window-hub.ts";

const durationMs = 1000;
const whole: WindowReport = { replica: "a", gen: 1, count: 1, endsInMs: durationMs, durationMs, previousGen: 0 };
const free = (i: number) =>
  freeStandingSubject({ namespace: "n", identifier: `${i}`, apiId: undefined }, { mode: "local", durationMs });

function setUp({ windowsMax = 20, freeStandingMax = 20 } = {}) {
  const clock = { nowMs: 0 };
  const hub = new MemoryHub({ nowMs: () => clock.nowMs, windowsMax, freeStandingMax });
  /** The others' counts of each; undefined where the report came to nothing. */
  const report = async (subjects: readonly string[], apiId?: string, given: Partial<WindowReport> = {}) => {
    const answer = await hub.exchange(subjects.map((subject) => ({ subject, apiId, report: { ...whole, ...given } })));
    expect(answer.refusal).toBe(answer.news.includes(undefined) ? "the coordinator is full" : undefined);
    return answer.news.map((news) => news?.others);
  };
  return { clock, hub, report };
}

const names = (count: number, name = "k") => Array.from({ length: count }, (_, i) => `${name}${i}`);

describe("a hub in memory", () => {
  it("holds a bounded number of windows, and goes on merging those that it has", async () => {
    const { report } = setUp({ windowsMax: 2 });
    expect(await report(["k", "l", "m"])).toEqual([0, 0, undefined]);
    expect(await report(["k", "l", "m"], undefined, { replica: "b", count: 4 })).toEqual([1, 1, undefined]);
    expect(await report(["k", "l", "m"])).toEqual([4, 4, undefined]);
  });

  it("makes room when windows are over, wherever they are", async () => {
    const { clock, report } = setUp({ windowsMax: 5000 });
    for (const apiId of ["a", "b"]) await report(names(5000, apiId), apiId);
    expect(await report(["new"], "c")).toEqual([undefined]);
    clock.nowMs = durationMs;
    // A part of them with each exchange, and in the end all.
    for (let i = 0; i < 10; i++) {
      clock.nowMs += 100;
      await report([]);
    }
    expect((await report(names(5000, "new"), "c")).filter((others) => others === 0)).toHaveLength(4500);
  });

  it("keeps the place of a window that is over and opens again", async () => {
    const { clock, report } = setUp({ windowsMax: 1 });
    await report(["k"]);
    clock.nowMs = durationMs;
    expect(await report(["k"], undefined, { gen: 2, previousGen: 1 })).toEqual([0]);
    expect(await report(["l"])).toEqual([undefined]);
  });

  it("leaves the last tenth of its places to APIs that hold little of it", async () => {
    const { report } = setUp();
    expect((await report(names(20), "big")).filter((others) => others === 0)).toHaveLength(18);
    expect(await report(names(3, "small"), "small")).toEqual([0, 0, undefined]);
  });

  it("has places of their own for free-standing limits", async () => {
    const { report } = setUp({ windowsMax: 1, freeStandingMax: 2 });
    expect(await report([free(1), free(2), free(3), "k", "l"])).toEqual([0, 0, undefined, 0, undefined]);
  });

  it("counts a bounded number of replicas in one window", async () => {
    const { clock, report } = setUp();
    for (let i = 0; i < 1000; i++) await report(["k"], undefined, { replica: `${i}` });
    expect(await report(["k"], undefined, { replica: "one more" })).toEqual([undefined]);
    expect(await report(["k"], undefined, { replica: "0", count: 2 })).toEqual([999]);
    clock.nowMs = durationMs;
    expect(await report(["k"], undefined, { replica: "one more", gen: 2 })).toEqual([0]);
  });
});
