import { describe, expect, it } from "vitest";
import type { RateLimit } from "../../src/domain/rate-limit.ts";
import type { WindowNews, WindowReport } from "../../src/domain/shared-window.ts";
import { WindowTable } from "../../src/domain/window-table.ts";

const rule: RateLimit = { mode: "local", limit: 3, durationMs: 1000 };

function setUp(slotsMax = 4) {
  const table = new WindowTable(slotsMax);
  return { table, slot: table.slotOf("k") as number };
}

/** Takes so many at that moment; answers how many were admitted. */
function take({ table, slot }: ReturnType<typeof setUp>, times: number, nowMs: number, by = rule): number {
  let admitted = 0;
  for (let i = 0; i < times; i++) if (table.rows.take(slot, by, nowMs)) admitted++;
  return admitted;
}

function keepAll({ table, slot }: ReturnType<typeof setUp>, times: number): void {
  for (let i = 0; i < times; i++) table.rows.commit(slot, table.rows.epoch(slot));
}

/** Makes a report and gives the table this answer to it, at the same moment. */
function hear({ table, slot }: ReturnType<typeof setUp>, news: Partial<WindowNews>, nowMs: number): WindowReport {
  const report = table.rows.report(slot, "a", nowMs) as WindowReport;
  table.rows.learn(slot, report, newsFor(report, news), nowMs, nowMs);
  return report;
}

function newsFor(report: WindowReport, news: Partial<WindowNews>): WindowNews {
  return { gen: report.gen, endsInMs: report.endsInMs, others: 0, replicas: 2, counted: true, ...news };
}

describe("a replica alone", () => {
  it("lets exactly the limit pass, counting down to nothing, and the end stays where it is", () => {
    const all = setUp();
    const seen = [0, 1, 250, 999].map((nowMs) => [
      all.table.rows.take(all.slot, rule, nowMs),
      all.table.rows.remaining(all.slot, rule.limit, nowMs),
      all.table.rows.endsMs(all.slot, rule, nowMs),
    ]);
    expect(seen).toEqual([
      [3, 2, 1000],
      [2, 1, 1000],
      [1, 0, 1000],
      [0, 0, 1000],
    ]);
  });

  it.each([
    ["a millisecond before the end", 999, 0],
    ["at the end", 1000, 3],
    ["long after", 50_000, 3],
  ])("opens the next window with the first request, %s or not", (_, nowMs, admitted) => {
    const all = setUp();
    take(all, 3, 0);
    expect(take(all, 4, nowMs)).toBe(admitted);
  });

  it("says before the first request what it would be", () => {
    const { table, slot } = setUp();
    expect([table.rows.remaining(slot, 3, 40), table.rows.endsMs(slot, rule, 40)]).toEqual([3, 1040]);
  });

  it("counts nothing that it refuses", () => {
    const all = setUp();
    take(all, 100, 0);
    all.table.rows.release(all.slot, all.table.rows.epoch(all.slot), all.table.rows.mineEndsMs(all.slot));
    expect(take(all, 2, 1)).toBe(1);
    expect(take(all, 4, 1000)).toBe(3);
  });

  it.each([
    ["raised", 5, 2],
    ["lowered", 2, 0],
  ])("holds an open window to a limit that is %s", (_, limit, admitted) => {
    const all = setUp();
    take(all, 3, 0);
    expect(take(all, 9, 1, { ...rule, limit })).toBe(admitted);
  });

  it.each([
    ["shortened", 10],
    ["lengthened", 5000],
  ])("keeps the end of an open window when the duration is %s", (_, durationMs) => {
    const all = setUp();
    take(all, 3, 0);
    expect(take(all, 1, 999, { ...rule, durationMs })).toBe(0);
    expect(take(all, 1, 1000, { ...rule, durationMs })).toBe(1);
  });

  it("does not join the rest of its own earlier window", () => {
    const all = setUp();
    take(all, 1, 5000);
    hear(all, { gen: 77, endsInMs: 20, replicas: 1 }, 5001);
    expect(all.table.rows.endsMs(all.slot, rule, 5002)).toBe(6000);
    expect(take(all, 9, 5500)).toBe(2);
    expect(take(all, 9, 6000)).toBe(3);
  });
});

describe("a released permit", () => {
  it("can be taken again in the same window", () => {
    const all = setUp();
    take(all, 3, 0);
    all.table.rows.release(all.slot, all.table.rows.epoch(all.slot), all.table.rows.mineEndsMs(all.slot));
    expect(take(all, 9, 1)).toBe(1);
  });

  it("changes nothing in a later window", () => {
    const all = setUp();
    take(all, 3, 0);
    const [epoch, mineEndsMs] = [all.table.rows.epoch(all.slot), all.table.rows.mineEndsMs(all.slot)];
    take(all, 3, 1000);
    all.table.rows.release(all.slot, epoch, mineEndsMs);
    expect(all.table.rows.remaining(all.slot, 3, 1001)).toBe(0);
    keepAll(all, 3);
    expect(all.table.rows.report(all.slot, "a", 1001)?.count).toBe(3);
  });

  it("changes nothing for another key that has the slot now", () => {
    const all = setUp(1);
    take(all, 3, 0);
    const [epoch, mineEndsMs] = [all.table.rows.epoch(all.slot), all.table.rows.mineEndsMs(all.slot)];
    all.table.sweep(1000, 1);
    expect(all.table.slotOf("other")).toBe(all.slot);
    take(all, 3, 1000);
    all.table.rows.release(all.slot, epoch, mineEndsMs);
    all.table.rows.commit(all.slot, epoch);
    expect(all.table.rows.remaining(all.slot, 3, 1001)).toBe(0);
    expect(all.table.rows.report(all.slot, "a", 1001)?.count).toBe(0);
  });
});

describe("a report", () => {
  it("tells what is known to be used, and never less later", () => {
    const all = setUp();
    const counts: (number | undefined)[] = [];
    const tell = () => counts.push(all.table.rows.report(all.slot, "a", 1)?.count);
    take(all, 3, 0);
    tell();
    keepAll(all, 1);
    tell();
    all.table.rows.release(all.slot, all.table.rows.epoch(all.slot), all.table.rows.mineEndsMs(all.slot));
    tell();
    keepAll(all, 1);
    tell();
    expect(counts).toEqual([0, 1, 1, 2]);
  });

  it("names the window, how long it lasts and the one that is over", () => {
    const all = setUp();
    take(all, 1, 0);
    expect(all.table.rows.report(all.slot, "a", 0.5)).toEqual({
      replica: "a",
      gen: 1,
      count: 0,
      endsInMs: 1000,
      durationMs: 1000,
      previousGen: 0,
    });
    take(all, 1, 1000);
    expect(all.table.rows.report(all.slot, "a", 1000)).toMatchObject({ gen: 2, previousGen: 1 });
  });

  it("is not made of a window that is over", () => {
    const all = setUp();
    expect(all.table.rows.report(all.slot, "a", 0)).toBeUndefined();
    take(all, 1, 0);
    expect(all.table.rows.report(all.slot, "a", 1000)).toBeUndefined();
  });

  it.each([
    ["nothing has been heard yet", 100, undefined, true],
    ["what was heard is new, and the limit far", 100, { others: 0, ageMs: 1 }, false],
    ["what was heard is as old as can be", 100, { others: 0, ageMs: 500 }, false],
    ["what was heard is older", 100, { others: 0, ageMs: 501 }, true],
    ["the limit is near", 10, { others: 7, ageMs: 1 }, true],
  ])("is urgent or not when %s", (_, limit, heard, urgent) => {
    const all = setUp();
    take(all, 1, 0, { ...rule, limit });
    if (heard !== undefined) hear(all, { others: heard.others }, 1);
    const nowMs = 1 + (heard?.ageMs ?? 0);
    expect(all.table.rows.isNewsUrgent(all.slot, limit, nowMs)).toBe(urgent);
  });

  it("of the longest window says no more than 30 days, on a machine that has run for months", () => {
    const month: RateLimit = { ...rule, durationMs: 2_592_000_000 };
    for (let nowMs = 2e9; nowMs < 2e9 + 1000; nowMs += 0.7) {
      const all = setUp();
      take(all, 1, nowMs, month);
      expect(all.table.rows.report(all.slot, "a", nowMs)?.endsInMs).toBe(2_592_000_000);
    }
  });
});

describe("news of the others", () => {
  it("stops a replica as soon as all together have used up the limit", () => {
    const all = setUp();
    take(all, 1, 0);
    hear(all, { others: 2 }, 1);
    expect(take(all, 1, 2)).toBe(0);
    expect(all.table.rows.refusesByGuess(all.slot, 3, 2)).toBe(false);
    expect(take(all, 1, 1000)).toBe(1);
  });

  it("never lowers what is known of them, as when the hub forgot or an older answer comes late", () => {
    const all = setUp();
    take(all, 1, 0);
    hear(all, { others: 2 }, 1);
    hear(all, { others: 0, replicas: 1 }, 2);
    expect(all.table.rows.remaining(all.slot, 3, 2)).toBe(0);
  });

  it("raises what is known of them, however old it is", () => {
    const all = setUp();
    take(all, 1, 0);
    const early = all.table.rows.report(all.slot, "a", 1) as WindowReport;
    hear(all, { others: 0 }, 100);
    all.table.rows.learn(all.slot, early, newsFor(early, { others: 2 }), 1, 101);
    expect(all.table.rows.remaining(all.slot, 3, 101)).toBe(0);
  });

  it.each([
    ["a window that is over", 1000],
    ["the window before", 1001],
  ])("changes nothing when it is of %s", (_, nowMs) => {
    const all = setUp();
    take(all, 1, 0);
    const report = all.table.rows.report(all.slot, "a", 1) as WindowReport;
    if (nowMs > 1000) take(all, 1, 1000);
    all.table.rows.learn(all.slot, report, newsFor(report, { gen: 9, others: 3 }), 1, nowMs);
    expect(all.table.rows.remaining(all.slot, 3, nowMs)).toBe(nowMs > 1000 ? 2 : 3);
  });

  it("makes the replica expect that they go on, and refuse because of that; newer news corrects it", () => {
    const all = setUp();
    const wide = { ...rule, limit: 20 };
    take(all, 1, 0, wide);
    hear(all, { others: 0 }, 10);
    hear(all, { others: 10 }, 20);
    expect(all.table.rows.remaining(all.slot, 20, 20)).toBe(9);
    expect(all.table.rows.remaining(all.slot, 20, 40)).toBe(0);
    expect(all.table.rows.refusesByGuess(all.slot, 20, 40)).toBe(true);
    for (let nowMs = 40; nowMs < 50; nowMs++) hear(all, { others: 10 }, nowMs);
    expect(all.table.rows.remaining(all.slot, 20, 50)).toBe(9);
  });
});

describe("joining a window that others have open", () => {
  it("does not let a second limit pass before `duration` after the first admission, though the window ends earlier", () => {
    const all = setUp();
    expect(take(all, 3, 0)).toBe(3);
    hear(all, { gen: 9, endsInMs: 100 }, 10);
    expect([take(all, 9, 110), take(all, 9, 999), take(all, 9, 1000)]).toEqual([0, 0, 3]);
  });

  it.each([
    ["sooner", 500, 1000],
    ["later", 1200, 1210],
  ])(
    "tells the end before which nothing passes, where the shared window ends %s than the own",
    (_, endsInMs, endsMs) => {
      const all = setUp();
      take(all, 3, 0);
      hear(all, { gen: 9, endsInMs }, 10);
      expect(all.table.rows.endsMs(all.slot, rule, 11)).toBe(endsMs);
      expect([take(all, 1, endsMs - 1), take(all, 1, endsMs)]).toEqual([0, 1]);
    },
  );

  it("takes its own count along when it is counted there", () => {
    const all = setUp();
    take(all, 2, 0);
    keepAll(all, 2);
    hear(all, { gen: 9, endsInMs: 800, others: 1 }, 10);
    expect(all.table.rows.report(all.slot, "a", 10)).toMatchObject({ gen: 9, count: 2, endsInMs: 800 });
    expect(take(all, 1, 11)).toBe(0);
  });

  it("leaves its own count behind when that belongs to the window before, and nothing of it can be released", () => {
    const all = setUp();
    take(all, 2, 0);
    const [epoch, mineEndsMs] = [all.table.rows.epoch(all.slot), all.table.rows.mineEndsMs(all.slot)];
    hear(all, { gen: 9, endsInMs: 990, counted: false }, 900);
    all.table.rows.release(all.slot, epoch, mineEndsMs);
    all.table.rows.commit(all.slot, epoch);
    expect(all.table.rows.report(all.slot, "a", 901)).toMatchObject({ gen: 9, count: 0, previousGen: 1 });
    expect(all.table.rows.remaining(all.slot, 3, 901)).toBe(2);
  });
});
