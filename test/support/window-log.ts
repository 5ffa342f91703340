import { admittedOf, costOf, type LoggedAnswer } from "./answer-log.ts";

export interface WindowRule {
  readonly limit: number;
  readonly durationMs: number;
}

/** What all replicas together let pass in one window that they shared: costs, of which most are 1. */
export interface SharedWindowCount {
  readonly endsMs: number;
  readonly admitted: number;
  readonly refused: number;
  /** Of the replicas, the most that one let pass. */
  readonly onOneMax: number;
  /** Whether every replica was asked until its end. */
  readonly isComplete: boolean;
}

/**
 * Counts by window. Replicas tell the end of a shared window a round trip apart at most, so ends less than half a window
 * after the earliest are ends of the same. Only for replicas that never lost sight of each other: one that was alone has
 * ends of its own, anywhere between.
 */
export function countSharedWindows(log: readonly LoggedAnswer[], { durationMs }: WindowRule): SharedWindowCount[] {
  const lastSentMs = new Map<number, number>();
  for (const { replica, sentMs } of log) {
    lastSentMs.set(replica, Math.max(sentMs, lastSentMs.get(replica) ?? 0));
  }
  const askedUntilMs = Math.min(...lastSentMs.values());
  const windows: LoggedAnswer[][] = [];
  let earliestMs = Number.NEGATIVE_INFINITY;
  // A call that costs nothing opens no window: it may tell of none.
  const counted = log.filter(({ cost }) => cost > 0);
  for (const answer of counted.toSorted((a, b) => a.resetMs - b.resetMs)) {
    if (answer.resetMs - earliestMs >= durationMs / 2) {
      windows.push([]);
      earliestMs = answer.resetMs;
    }
    windows.at(-1)?.push(answer);
  }
  return windows.map((answers) => {
    const end = answers.at(-1)?.resetMs as number;
    const passed = admittedOf(answers);
    const perReplica = Map.groupBy(passed, ({ replica }) => replica);
    const onOneMax = Math.max(0, ...[...perReplica.values()].map(costOf));
    const admitted = costOf(passed);
    const refused = costOf(answers) - admitted;
    return { endsMs: end, admitted, refused, onOneMax, isComplete: askedUntilMs >= end };
  });
}

/** How far the windows went beyond the limit, in percent. */
export function overshootOf(windows: readonly SharedWindowCount[], limit: number): { max: number; mean: number } {
  const percents = windows.map(({ admitted }) => ((admitted - limit) / limit) * 100);
  return { max: Math.max(...percents), mean: percents.reduce((sum, one) => sum + one, 0) / percents.length };
}

/**
 * The replicas whose admissions cannot be had without one of their own windows passing the limit. A replica's own window
 * opens with an admission that comes after the one before has ended, and lasts `durationMs`. Callers do not see when a
 * replica decides, only between which moments: so what is looked for is any way in which the windows may have lain, and
 * in each of them only those are counted that were certainly in it. The log must begin with the key's first use.
 */
export function replicasOverLimit(log: readonly LoggedAnswer[], rule: WindowRule): number[] {
  const counted = admittedOf(log).filter(({ cost }) => cost > 0);
  const perReplica = Map.groupBy(counted, ({ replica }) => replica);
  return [...perReplica].filter(([, admitted]) => !canBeWindows(admitted, rule)).map(([replica]) => replica);
}

function canBeWindows(admitted: readonly LoggedAnswer[], { limit, durationMs }: WindowRule): boolean {
  const toTry = openersAmong(admitted, Number.NEGATIVE_INFINITY, Number.NEGATIVE_INFINITY) ?? [];
  const tried = new Set<LoggedAnswer>();
  for (let opener = toTry.pop(); opener !== undefined; opener = toTry.pop()) {
    if (tried.has(opener)) continue;
    tried.add(opener);
    const { sentMs, answeredMs } = opener;
    const endsAtLeastMs = sentMs + durationMs;
    const certain = admitted.filter((one) => one.sentMs > answeredMs && one.answeredMs < endsAtLeastMs);
    if (opener.cost + costOf(certain) > limit) continue;
    const next = openersAmong(admitted, endsAtLeastMs, answeredMs + durationMs);
    if (next === undefined) return true;
    toTry.push(...next);
  }
  return false;
}

/**
 * Which may have been the first after a moment between two: none may certainly have come before it. Undefined when there
 * need not have been any.
 */
function openersAmong(admitted: readonly LoggedAnswer[], fromMs: number, surelyMs: number): LoggedAnswer[] | undefined {
  let firstByMs = Number.POSITIVE_INFINITY;
  for (const { sentMs, answeredMs } of admitted) if (sentMs >= surelyMs) firstByMs = Math.min(firstByMs, answeredMs);
  if (firstByMs === Number.POSITIVE_INFINITY) return undefined;
  return admitted.filter(({ sentMs, answeredMs }) => answeredMs >= fromMs && sentMs <= firstByMs);
}
