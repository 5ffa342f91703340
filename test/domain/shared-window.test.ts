import { describe, expect, it } from "vitest";
import { mergeReport, type SharedWindow, type WindowReport } from "../../src/domain/shared-window.ts";

function report(changes: Partial<WindowReport> = {}): WindowReport {
  return { replica: "a", gen: 1, count: 3, endsInMs: 1000, durationMs: 1000, previousGen: 0, ...changes };
}

/** Merges one after the other, all at the same moment unless it says otherwise. */
function merge(reports: readonly (Partial<WindowReport> & { readonly atMs?: number })[]) {
  let window: SharedWindow | undefined;
  const news = reports.map(({ atMs = 0, ...changes }) => {
    const merged = mergeReport(window, report(changes), atMs);
    window = merged.window;
    return merged.news;
  });
  return { window, news, last: news[news.length - 1] };
}

describe("mergeReport", () => {
  it("opens the window of the first report, for as long as that one has left", () => {
    const { window, last } = merge([{ endsInMs: 700, atMs: 50 }]);
    expect(window).toEqual({ gen: 1, endsAtMs: 750, counts: new Map([["a", 3]]) });
    expect(last).toEqual({ gen: 1, endsInMs: 700, others: 0, replicas: 1, counted: true });
  });

  it("tells each replica the sum of all others, never its own count", () => {
    const { news } = merge([{ count: 3 }, { replica: "b", count: 4 }, { replica: "c", count: 5 }, { count: 3 }]);
    expect(news.map(({ others, replicas }) => [others, replicas])).toEqual([
      [0, 1],
      [3, 2],
      [7, 3],
      [9, 3],
    ]);
  });

  it.each([
    ["twice", [3, 3]],
    ["late, after a higher one", [3, 2]],
    ["many times and out of order", [1, 3, 2, 3, 1]],
    ["only at last", [3]],
  ])("comes to the same when reports arrive %s", (_, counts) => {
    const { last, window } = merge([...counts.map((count) => ({ count })), { replica: "b", count: 1 }]);
    expect(last?.others).toBe(3);
    expect(window?.counts.get("a")).toBe(3);
  });

  it("does not move the end of an open window when a replica reports another end", () => {
    const { last } = merge([{}, { replica: "b", gen: 2, endsInMs: 900, atMs: 400 }, { endsInMs: 5000, atMs: 500 }]);
    expect(last?.endsInMs).toBe(500);
  });

  it("accepts reports of a window again after it was lost", () => {
    const before = merge([{ count: 3 }, { replica: "b", count: 4 }]);
    const { last } = merge([
      { replica: "b", count: 4, endsInMs: 600 },
      { count: 3, endsInMs: 600 },
    ]);
    expect(last).toEqual({ ...before.news[0], endsInMs: 600, others: 4, replicas: 2 });
  });

  it.each([
    ["a millisecond before its end", 999, 1, 1],
    ["at its end", 1000, 2, 1000],
  ])("lets a report of another window join %s: in the one that is open", (_, atMs, gen, endsInMs) => {
    const { last } = merge([{}, { replica: "b", gen: 2, atMs }]);
    expect(last).toMatchObject({ gen, endsInMs, counted: true });
  });

  it("replaces a window, counts included, with the next one when a replica knows that it is over", () => {
    const { last, window } = merge([{}, { replica: "b", count: 4 }, { gen: 2, previousGen: 1, count: 1, atMs: 990 }]);
    expect(last).toEqual({ gen: 2, endsInMs: 1000, others: 0, replicas: 1, counted: true });
    expect(window?.counts).toEqual(new Map([["a", 1]]));
  });

  it("does not mistake a replica that knows of no window before for one that does", () => {
    expect(merge([{ gen: 7 }, { replica: "b", gen: 2, previousGen: 0 }]).last?.gen).toBe(7);
  });

  describe("with a report of another window than the open one, which has 1000 ms left", () => {
    it.each([
      ["as much left", 1000, true],
      ["a little less left", 900, true],
      ["half of the duration less left", 500, true],
      ["more than half of the duration less left", 499, false],
      ["hardly any left", 1, false],
      ["more left, as after a delay", 1500, true],
    ])("%s: it is counted or left out", (_, endsInMs, counted) => {
      const { last, window } = merge([{}, { replica: "b", gen: 2, count: 9, endsInMs }]);
      expect(last).toMatchObject({ gen: 1, others: 3, replicas: 2, counted });
      expect(window?.counts.get("b")).toBe(counted ? 9 : undefined);
    });
  });

  it("counts every report of the open window, however little its sender thinks is left", () => {
    expect(merge([{}, { replica: "b", endsInMs: 1 }]).last).toMatchObject({ counted: true, others: 3 });
  });

  it("changes nothing that it was given", () => {
    const kept: SharedWindow = Object.freeze({ gen: 1, endsAtMs: 1000, counts: new Map([["a", 3]]) });
    mergeReport(kept, report({ count: 8 }), 0);
    expect(kept.counts.get("a")).toBe(3);
  });
});
