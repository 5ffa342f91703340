import type { RateLimit } from "../../src/domain/rate-limit.ts";
import type { WindowNews, WindowReport } from "../../src/domain/shared-window.ts";

/** One use that was let through. Taken back, it is no longer in any list. */
export interface Admission {
  readonly cost: number;
  isHeld: boolean;
}

/** A window and its admissions. A new window is a new list, so that releases in the old one do not change it. */
interface OwnWindow {
  readonly endsMs: number;
  readonly admissions: Set<Admission>;
}

interface SharedWindow extends OwnWindow {
  /** Known once it has been reported. */
  gen: number | undefined;
  others: number;
}

/**
 * What one replica has to do with one key, written from the promises and not from the table: lists instead of counters,
 * no columns, no eras. It does not guess how the others go on; with others in the window it knows the most that may
 * remain, without them it knows exactly.
 */
export class ReplicaModel {
  /** No other replica ever counts the key: then there is one window, and no news changes it. */
  readonly #isAlone: boolean;
  #own: OwnWindow | undefined;
  #shared: SharedWindow | undefined;

  constructor(isAlone: boolean) {
    this.#isAlone = isAlone;
  }

  isOpen(nowMs: number): boolean {
    return this.#ownAt(nowMs) !== undefined || this.#sharedAt(nowMs) !== undefined;
  }

  /** How many more may pass at most; whether it must be exactly so many. */
  remaining(limit: number, nowMs: number): { readonly most: number; readonly isExact: boolean } {
    const own = costOf(this.#ownAt(nowMs)?.admissions);
    const shared = this.#isAlone ? undefined : this.#sharedAt(nowMs);
    const known = shared === undefined ? 0 : costOf(shared.admissions) + shared.others;
    return { most: Math.max(0, limit - Math.max(own, known)), isExact: (shared?.others ?? 0) === 0 };
  }

  /** The times that may be shown as the end of the window to a caller who wants to pass at that cost. */
  ends(rule: RateLimit, cost: number, nowMs: number): number[] {
    const own = this.#ownAt(nowMs);
    const shared = this.#isAlone ? undefined : this.#sharedAt(nowMs);
    const full = [
      ...(own !== undefined && costOf(own.admissions) + cost > rule.limit ? [own.endsMs] : []),
      ...(shared !== undefined && costOf(shared.admissions) + shared.others + cost > rule.limit ? [shared.endsMs] : []),
    ];
    // Nothing passes before the last full window ends: with an earlier time a caller would come too early.
    if (full.length > 0) return [Math.max(...full)];
    const open = [own?.endsMs, shared?.endsMs].filter((endsMs) => endsMs !== undefined);
    return open.length > 0 ? open : [nowMs + rule.durationMs];
  }

  admit(rule: RateLimit, cost: number, nowMs: number): Admission {
    const admission = { cost, isHeld: true };
    this.#own = this.#ownAt(nowMs) ?? { endsMs: nowMs + rule.durationMs, admissions: new Set() };
    this.#own.admissions.add(admission);
    this.#shared = this.#sharedAt(nowMs) ?? {
      gen: undefined,
      endsMs: nowMs + rule.durationMs,
      admissions: new Set(),
      others: 0,
    };
    this.#shared.admissions.add(admission);
    return admission;
  }

  takeBack(admission: Admission): void {
    this.#own?.admissions.delete(admission);
    this.#shared?.admissions.delete(admission);
  }

  /** The report that the replica sends now is wrong in this; undefined when it is right. */
  objectionTo(report: WindowReport | undefined, nowMs: number): string | undefined {
    const shared = this.#sharedAt(nowMs);
    if (report === undefined || shared === undefined) {
      return (report === undefined) === (shared === undefined) ? undefined : "a report of a window that is not open";
    }
    shared.gen ??= report.gen;
    const used = costOf([...shared.admissions].filter(({ isHeld }) => !isHeld));
    if (report.count !== used) return `${report.count} reported, ${used} are used`;
    if (report.gen !== shared.gen) return `window ${report.gen} reported, it counts in ${shared.gen}`;
    if (Math.abs(report.endsInMs - (shared.endsMs - nowMs)) > 1) return `reported to end in ${report.endsInMs}`;
    return undefined;
  }

  /** News counts only for the window that it is an answer to. */
  hear(report: WindowReport, news: WindowNews, nowMs: number): void {
    const shared = this.#sharedAt(nowMs);
    if (this.#isAlone || shared === undefined || shared.gen !== report.gen) return;
    // A window without other replicas is left over from this replica's own one.
    const isJoining = news.gen !== shared.gen && news.replicas > 1;
    const joined = isJoining
      ? {
          gen: news.gen,
          endsMs: nowMs + news.endsInMs,
          admissions: news.counted ? shared.admissions : new Set<Admission>(),
          others: 0,
        }
      : shared;
    joined.others = Math.max(joined.others, news.others);
    this.#shared = joined;
  }

  /** The replica was stopped, and started again at `nowMs` of a new clock, when so much of the wall clock had passed. */
  restart(stoppedMs: number, goneMs: number, nowMs: number): void {
    // A clock that was set back lets windows last longer; one that was set forward can end them, once.
    const shiftMs = nowMs - stoppedMs - Math.max(0, goneMs);
    const own = this.#ownAt(stoppedMs);
    const shared = this.#sharedAt(stoppedMs);
    this.#own = own && { ...own, endsMs: own.endsMs + shiftMs };
    this.#shared = shared && { ...shared, endsMs: shared.endsMs + shiftMs };
    // The outcome of those under way stays unknown: they count as used.
    for (const admission of [...(own?.admissions ?? []), ...(shared?.admissions ?? [])]) admission.isHeld = false;
  }

  get sharedGen(): number | undefined {
    return this.#shared?.gen;
  }

  sharedUses(nowMs: number): number {
    return costOf(this.#sharedAt(nowMs)?.admissions);
  }

  /** The counts of the other replicas, as far as it knows. */
  othersKnown(nowMs: number): number {
    return this.#sharedAt(nowMs)?.others ?? 0;
  }

  nextEndMs(nowMs: number): number | undefined {
    const ends = [this.#ownAt(nowMs)?.endsMs, this.#sharedAt(nowMs)?.endsMs].filter((endsMs) => endsMs !== undefined);
    return ends.length === 0 ? undefined : Math.min(...ends);
  }

  #ownAt(nowMs: number): OwnWindow | undefined {
    return this.#own !== undefined && nowMs < this.#own.endsMs ? this.#own : undefined;
  }

  #sharedAt(nowMs: number): SharedWindow | undefined {
    return this.#shared !== undefined && nowMs < this.#shared.endsMs ? this.#shared : undefined;
  }
}

function costOf(admissions: Iterable<Admission> = []): number {
  let sum = 0;
  for (const { cost } of admissions) sum += cost;
  return sum;
}
