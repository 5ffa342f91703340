import type { WindowNews, WindowReport } from "../../src/domain/shared-window.ts";
import { Violation } from "./violation.ts";

interface Told {
  readonly gen: number;
  readonly endsAtMs: number;
  /** The highest count that each replica has reported of this window. */
  readonly counts: Map<string, number>;
}

/** Checks a hub's answers against all reports since it last lost its data. */
export class HubModel {
  readonly #told = new Map<string, Told>();

  forget(): void {
    this.#told.clear();
  }

  check(subject: string, report: WindowReport, news: WindowNews, nowMs: number): void {
    const before = this.#told.get(subject);
    const mustOpen = before === undefined || nowMs >= before.endsAtMs || before.gen === report.previousGen;
    const told = mustOpen ? { gen: report.gen, endsAtMs: nowMs + report.endsInMs, counts: new Map() } : before;
    this.#told.set(subject, told);
    const said = JSON.stringify({ report, news });
    if (news.gen !== told.gen) throw new Violation(`the hub counts in another window than ${told.gen}: ${said}`);
    if (news.endsInMs !== told.endsAtMs - nowMs) throw new Violation(`the hub moved a window's end: ${said}`);
    if (news.gen === report.gen && !news.counted) throw new Violation(`the hub left out a count: ${said}`);
    const others = [...told.counts].filter(([replica]) => replica !== report.replica);
    const sum = others.reduce((total, [, count]) => total + count, 0);
    if (news.others !== sum) throw new Violation(`the hub was told of ${sum} by others: ${said}`);
    if (news.replicas !== others.length + 1) throw new Violation(`the hub knows other replicas: ${said}`);
    if (!news.counted) return;
    told.counts.set(report.replica, Math.max(told.counts.get(report.replica) ?? 0, report.count));
  }
}
