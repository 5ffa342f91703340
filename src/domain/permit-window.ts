import { type CostRun, fitting } from "./cost-runs.ts";

/**
 * A subject's window as stored in the permit ledger. Permits are charged here before a replica holds them: even if a replica
 * crashes, no more than `limit` can ever be spent in one window.
 *
 * What holds when the ledger's clock is set, as well:
 * - S1, never over: `granted` of one window never passes `limit`, and windows are counted up, never down. No clock is
 *   needed for that.
 * - Never twice: a window ends before its duration has passed only by a clock that is ahead of the one that opened it.
 *   A clock that was set back and is right again finds the true end untouched.
 * - Never locked for good: a clock that is behind keeps no window open for longer than the duration that the window was
 *   opened with, counted from the first ask that the clock is behind for.
 *
 * A window that was opened at this clock's time cannot end later than its duration from now. So a true end further away
 * than that shows that the clock is behind, and `clampedEndsAtMs` counts in its place, until the clock is right again.
 * A step back by less than a window's age shows nowhere: the window then lasts longer by that step.
 */
export interface PermitWindow {
  /** Counts the subject's windows; 0 when none was ever opened. */
  readonly gen: number;
  /** The true end, by the ledger's clock as it was when the window was opened. Never changed while it is open. */
  readonly endsAtMs: number;
  /** The duration it was opened with. The rule may have another by now. */
  readonly durationMs: number;
  /** The end that counts while the ledger's clock is seen to be behind. 0: it is not, and the true end counts. */
  readonly clampedEndsAtMs: number;
  /** Permits handed out in this window, less those that came back. */
  readonly granted: number;
  /** How many of the granted ones are reported as spent. */
  readonly spent: number;
  /** Few permits are left: from then on only waiting requests are served, and nothing in advance. */
  readonly contended: boolean;
}

export const neverOpened: PermitWindow = {
  gen: 0,
  endsAtMs: 0,
  durationMs: 0,
  clampedEndsAtMs: 0,
  granted: 0,
  spent: 0,
  contended: false,
};

/** Most runs in one ask. What waits beyond them is asked for in the next one. */
export const askRunsMax = 100;

/** What one asker gives and wants, in one message: whole numbers, of which those below 0 count as 0. */
export interface PermitAsk {
  /**
   * The costs of the requests that wait, in order of arrival. Each gets all of its permits or none. Only these open a
   * window. A run of a cost or count below 1 counts as none.
   */
  readonly waiting: readonly CostRun[];
  /** Permits beyond those, for what is expected soon. */
  readonly inAdvance: number;
  /** The window that `returned` and `spent` belong to. Those of another window than the open one are dropped. */
  readonly gen: number;
  /** Permits that come back unspent. The asker must have given them up before it sends this, and send it once. */
  readonly returned: number;
  /** Permits spent since the last report. */
  readonly spent: number;
  /**
   * The known number of askers that share the subject: none gets more than half of an equal part in advance. 0: nobody asks
   * for permits, and the window is not marked as contended.
   */
  readonly holders: number;
  /**
   * The rule of a free-standing limit, which is stored nowhere: it is part of the ask, and the ledger makes the window of a
   * subject that has none. Absent: the rule in force is the ledger's.
   */
  readonly sentRule?: PermitRule | undefined;
}

/** What a strict limit allows. */
export interface PermitRule {
  readonly limit: number;
  readonly durationMs: number;
}

/**
 * The window of a subject that had none, or whose window was removed. It is over. Its generation is the ledger's time, which
 * is beyond that of every window before: windows last at least a second, so generations grow slower than milliseconds.
 */
export function windowMadeAt(nowMs: number, { durationMs }: PermitRule): PermitWindow {
  return { ...neverOpened, gen: nowMs, endsAtMs: nowMs, durationMs };
}

export interface PermitGrant {
  /** The window that the permits are for; when none is open, the latest one. */
  readonly gen: number;
  readonly granted: number;
  /** Permits that are still to be had. */
  readonly left: number;
  /** Permits that replicas may hold: handed out, and neither returned nor reported as spent. */
  readonly outstanding: number;
  /**
   * Time to the end that counts; 0 when no window is open, never more than `durationMs`. The ledger counts whole
   * milliseconds: the end can be up to one nearer than this says, which a holder must allow for.
   */
  readonly endsInMs: number;
  /** For display only: the end that counts, by the ledger's clock. */
  readonly endsAtMs: number;
  /** The duration that the window was opened with. */
  readonly durationMs: number;
  /**
   * The ledger's clock is known to be behind, so the window's true end is unknown. Only waiting requests get permits, and
   * must spend them immediately: held permits could outlive their window when the clock is right again.
   */
  readonly clockBehind: boolean;
  readonly contended: boolean;
  readonly limit: number;
}

/** Settles one ask by the ledger's clock and the subject's current rule, even if the asker knows an older rule. */
export function exchangePermits(
  before: PermitWindow,
  ask: PermitAsk,
  rule: PermitRule,
  nowMs: number,
): { readonly window: PermitWindow; readonly grant: PermitGrant } {
  const timed = judgedByClock(before, nowMs);
  const waiting = soundRuns(ask.waiting);
  const window = nowMs < countingEndMs(timed) ? credited(timed, ask) : opened(timed, waiting, rule, nowMs);
  const endsAtMs = countingEndMs(window);
  const endsInMs = Math.max(0, endsAtMs - nowMs);
  const isOpen = endsInMs > 0;
  const clockBehind = isOpen && window.clampedEndsAtMs !== 0;
  const available = isOpen ? Math.max(0, rule.limit - window.granted) : 0;
  const share = 2 * Math.max(0, ask.holders);
  const inAdvance = window.contended || clockBehind ? 0 : ask.inAdvance;
  const granted = grantedOf(available, waiting, inAdvance, Math.floor(available / Math.max(2, share)));
  const after: PermitWindow = {
    ...window,
    granted: window.granted + granted,
    contended: window.contended || (isOpen && available - granted < share),
  };
  return {
    window: after,
    grant: {
      gen: after.gen,
      granted,
      left: available - granted,
      // The permits of an ended window are worthless.
      outstanding: isOpen ? after.granted - after.spent : 0,
      endsInMs,
      endsAtMs,
      durationMs: after.durationMs,
      clockBehind,
      contended: isOpen && (after.contended || clockBehind),
      limit: rule.limit,
    },
  };
}

/** Runs that stand for requests. */
export function soundRuns(runs: readonly CostRun[]): readonly CostRun[] {
  return runs.filter(({ cost, count }) => cost >= 1 && count >= 1);
}

/**
 * Whole costs only, in order, first fit: a part of a cost would serve no request, and be missing elsewhere. In advance
 * only if no request waits in vain, and then no more in all than `inAllMax`, unless more is waited for.
 */
function grantedOf(available: number, waiting: readonly CostRun[], inAdvance: number, inAllMax: number): number {
  let granted = 0;
  let isEachServed = true;
  for (const run of waiting) {
    const count = fitting(available - granted, run);
    granted += count * run.cost;
    isEachServed &&= count === run.count;
  }
  return isEachServed ? Math.max(granted, Math.min(granted + Math.max(0, inAdvance), inAllMax)) : granted;
}

/**
 * Sets the clamped end aside when the clock is right, and makes one when it is behind. One that is there stays, or no
 * window would ever end by it; unless the clock was set back further since.
 */
function judgedByClock(window: PermitWindow, nowMs: number): PermitWindow {
  const { endsAtMs, durationMs, clampedEndsAtMs } = window;
  if (endsAtMs - nowMs <= durationMs) return clampedEndsAtMs === 0 ? window : { ...window, clampedEndsAtMs: 0 };
  if (clampedEndsAtMs !== 0 && clampedEndsAtMs - nowMs <= durationMs) return window;
  return { ...window, clampedEndsAtMs: nowMs + durationMs };
}

function countingEndMs({ endsAtMs, clampedEndsAtMs }: PermitWindow): number {
  return clampedEndsAtMs === 0 ? endsAtMs : clampedEndsAtMs;
}

/**
 * Returns and reports for a window that is not the open one are dropped. A permit is either spent or returned, once. An
 * asker may claim anything, but never more is returned than was handed out, so `limit` is never exceeded.
 */
function credited(window: PermitWindow, ask: PermitAsk): PermitWindow {
  if (ask.gen !== window.gen) return window;
  const spent = Math.min(window.granted, window.spent + Math.max(0, ask.spent));
  const returned = Math.min(window.granted - spent, Math.max(0, ask.returned));
  return { ...window, granted: window.granted - returned, spent };
}

/** A window begins with real demand that it can serve, never with a report, a wish or a cost above the limit. */
function opened(window: PermitWindow, waiting: readonly CostRun[], rule: PermitRule, nowMs: number): PermitWindow {
  if (!waiting.some(({ cost }) => cost <= rule.limit)) return window;
  const { durationMs } = rule;
  return { ...neverOpened, gen: window.gen + 1, endsAtMs: nowMs + durationMs, durationMs };
}
