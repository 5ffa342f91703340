/*
 * A window that several replicas count into, as their hub keeps it. Counts are absolute and merged by
 * maximum, so a report that is lost, doubled or late does no harm, and what was forgotten comes back with the next one.
 */

/** What a replica reports about one subject. The answer is what the others have counted. */
export interface WindowReport {
  readonly replica: string;
  /** The window it counts in. */
  readonly gen: number;
  /** How many it has let pass in that window. */
  readonly count: number;
  /** Time to that window's end. */
  readonly endsInMs: number;
  readonly durationMs: number;
  /** The window before, which is over; 0 if it knows none. */
  readonly previousGen: number;
}

/** What the others have done. */
export interface WindowNews {
  /** The window that is open. */
  readonly gen: number;
  readonly endsInMs: number;
  /** How many all others together have let pass in it. */
  readonly others: number;
  /** How many replicas count in it, the asker included. */
  readonly replicas: number;
  /** Whether the reported count is in it. It is not if it belonged to the window before. */
  readonly counted: boolean;
}

export interface SharedWindow {
  readonly gen: number;
  readonly endsAtMs: number;
  readonly counts: ReadonlyMap<string, number>;
}

/**
 * Merges a report into what is kept. The first report opens the window, or opens it again when it was forgotten; a
 * report of another window joins the open one, unless it is so much older that its count belongs to the one before.
 */
export function mergeReport(
  kept: SharedWindow | undefined,
  report: WindowReport,
  nowMs: number,
): { readonly window: SharedWindow; readonly news: WindowNews } {
  const open = kept !== undefined && nowMs < kept.endsAtMs && kept.gen !== report.previousGen ? kept : undefined;
  const { gen, endsAtMs, counts } = open ?? { gen: report.gen, endsAtMs: nowMs + report.endsInMs, counts: noCounts };
  const counted = gen === report.gen || endsAtMs - nowMs - report.endsInMs <= report.durationMs / 2;
  const merged = new Map(counts);
  if (counted) merged.set(report.replica, Math.max(counts.get(report.replica) ?? 0, report.count));
  let others = 0;
  for (const [replica, count] of merged) if (replica !== report.replica) others += count;
  return {
    window: { gen, endsAtMs, counts: merged },
    news: {
      gen,
      endsInMs: endsAtMs - nowMs,
      others,
      replicas: merged.size + (merged.has(report.replica) ? 0 : 1),
      counted,
    },
  };
}

const noCounts: ReadonlyMap<string, number> = new Map();
