import { durationMaxMs, type RateLimit } from "./rate-limit.ts";
import type { WindowNews, WindowReport } from "./shared-window.ts";

/** No news for this long: what is known of the others is too old to go by, and they are not extrapolated any further. */
const newsMaxAgeMs = 500;

/**
 * The windows that this replica counts in: a row of numbers each, so that a million of them cost little memory and
 * nothing to collect. Time is monotonic: steps of the wall clock do not reach it.
 *
 * Two counts run side by side. `mine` is this replica's own window: it opens with the first admission and is not reset
 * sooner than `duration` after it, whatever the others say; it never passes the limit, so that all replicas together
 * let pass at most replicas × limit. `share` is this replica's part of the window that all replicas share: with what is
 * known of the others it makes the replica stop early. For a subject that is used on one replica both are one window.
 */
export class WindowRows {
  readonly #rows: Float64Array;
  readonly #nextGen: () => number;

  /** `nextGen` gives numbers that no two windows share, on any replica; a replica that is alone just counts. */
  constructor(slotsMax: number, nextGen: () => number = counting()) {
    this.#rows = new Float64Array(slotsMax * rowLength);
    this.#nextGen = nextGen;
  }

  /**
   * Takes the cost if that many are left, or nothing; answers how many were left. What was taken is held until it is
   * committed or released. The cost is at least 1.
   */
  take(slot: number, rule: RateLimit, nowMs: number, cost = 1): number {
    const left = this.remaining(slot, rule.limit, nowMs);
    if (left < cost) return left;
    if (nowMs >= this.#get(slot, column.mineEndsMs)) this.#openMine(slot, rule, nowMs);
    if (nowMs >= this.#get(slot, column.shareEndsMs)) this.#openShare(slot, rule, nowMs);
    this.#add(slot, column.mine, cost);
    this.#add(slot, column.share, cost);
    this.#add(slot, column.held, cost);
    return left;
  }

  /** What identifies the windows that were just charged, for `commit` and `release`. */
  epoch(slot: number): number {
    return this.#get(slot, column.epoch);
  }

  mineEndsMs(slot: number): number {
    return this.#get(slot, column.mineEndsMs);
  }

  /** What was taken has been used. */
  commit(slot: number, epoch: number, cost = 1): void {
    if (this.#get(slot, column.epoch) === epoch) this.#add(slot, column.held, -cost);
  }

  /** What was taken was not used: uncounted, in the windows in which it was counted only. */
  release(slot: number, epoch: number, mineEndsMs: number, cost = 1): void {
    if (this.#get(slot, column.mineEndsMs) === mineEndsMs) this.#add(slot, column.mine, -cost);
    if (this.#get(slot, column.epoch) !== epoch) return;
    this.#add(slot, column.held, -cost);
    this.#add(slot, column.share, -cost);
  }

  /** How many more would pass now. */
  remaining(slot: number, limit: number, nowMs: number): number {
    const mine = nowMs < this.#get(slot, column.mineEndsMs) ? this.#get(slot, column.mine) : 0;
    if (nowMs >= this.#get(slot, column.shareEndsMs)) return Math.max(0, limit - mine);
    const all = this.#get(slot, column.share) + this.#othersBy(slot, nowMs);
    return Math.max(0, limit - Math.max(mine, all));
  }

  /** When the last window ends that stands in the way of the cost; when none is open, when it would if it opened now. */
  endsMs(slot: number, rule: RateLimit, nowMs: number, cost = 1): number {
    const mineEndsMs = this.#get(slot, column.mineEndsMs);
    const shareEndsMs = this.#get(slot, column.shareEndsMs);
    if (nowMs >= shareEndsMs) return nowMs < mineEndsMs ? mineEndsMs : nowMs + rule.durationMs;
    if (!this.#isMineFull(slot, rule.limit, cost, nowMs)) return shareEndsMs;
    return this.#isShareFull(slot, rule.limit, cost) ? Math.max(mineEndsMs, shareEndsMs) : mineEndsMs;
  }

  /** Whether to exchange counts with the others immediately: the subject is cold, the news is old, or the limit is near. */
  isNewsUrgent(slot: number, limit: number, nowMs: number): boolean {
    const newsAtMs = this.#get(slot, column.newsAtMs);
    if (newsAtMs < 0 || nowMs - newsAtMs > newsMaxAgeMs) return true;
    const share = this.#get(slot, column.share);
    const left = limit - share - this.#get(slot, column.others);
    // What is left, cut in so many pieces that one unreported piece of each replica is a small part of it.
    return (
      share - this.#get(slot, column.reported) >= Math.max(1, Math.floor(left / (4 * this.#get(slot, column.replicas))))
    );
  }

  /** Whether it refuses by what it expects of the others, not by what it knows. Then newer news can change its mind. */
  refusesByGuess(slot: number, limit: number, nowMs: number, cost = 1): boolean {
    if (nowMs >= this.#get(slot, column.shareEndsMs)) return false;
    return !this.#isMineFull(slot, limit, cost, nowMs) && !this.#isShareFull(slot, limit, cost);
  }

  /** The report for the other replicas; undefined when no window is open. */
  report(slot: number, replica: string, nowMs: number): WindowReport | undefined {
    // Sums of fractions are rounded: the longest window could seem to last a millisecond more.
    const endsInMs = Math.min(durationMaxMs, Math.ceil(this.#get(slot, column.shareEndsMs) - nowMs));
    if (endsInMs <= 0) return undefined;
    return {
      replica,
      gen: this.#get(slot, column.gen),
      count: this.#get(slot, column.share) - this.#get(slot, column.held),
      endsInMs,
      durationMs: this.#get(slot, column.durationMs),
      previousGen: this.#get(slot, column.previousGen),
    };
  }

  /** Takes in the answer to a report. An answer to a window that is over changes nothing; a late one lowers no count. */
  learn(slot: number, report: WindowReport, news: WindowNews, sentAtMs: number, nowMs: number): void {
    if (this.#get(slot, column.gen) !== report.gen || nowMs >= this.#get(slot, column.shareEndsMs)) return;
    // A window without other replicas is left over from this replica's earlier one: its end does not count.
    if (news.gen !== report.gen && news.replicas > 1) this.#join(slot, news, nowMs);
    if (news.counted) this.#set(slot, column.reported, Math.max(this.#get(slot, column.reported), report.count));
    this.#set(slot, column.replicas, news.replicas);

    // Counts only grow. If the hub lost them, the next report restores them.
    const more = Math.max(0, news.others - this.#get(slot, column.others));
    this.#add(slot, column.others, more);
    const atMs = (sentAtMs + nowMs) / 2;
    const knownAtMs = this.#get(slot, column.newsAtMs);
    if (atMs <= knownAtMs) return;
    if (knownAtMs >= 0) {
      this.#set(slot, column.othersPerMs, (this.#get(slot, column.othersPerMs) + more / (atMs - knownAtMs)) / 2);
    } else if (news.others === 0) {
      this.#set(slot, column.othersPerMs, 0);
    }
    this.#set(slot, column.newsAtMs, atMs);
  }

  /** Whether it counts anything still. */
  isOpen(slot: number, nowMs: number): boolean {
    return nowMs < this.#get(slot, column.mineEndsMs) || nowMs < this.#get(slot, column.shareEndsMs);
  }

  /** For another subject: nothing is left of the one before. */
  clear(slot: number): void {
    // A new epoch: what was taken for the subject that had the slot before does not belong to this one.
    this.#add(slot, column.epoch, 1);
    this.#set(slot, column.mineEndsMs, 0);
    this.#set(slot, column.shareEndsMs, 0);
    this.#set(slot, column.gen, 0);
    this.#set(slot, column.othersPerMs, 0);
  }

  /** The window as it is to be restored later: times are relative. */
  save(slot: number, subject: string, nowMs: number): SavedWindow {
    return {
      subject,
      mine: this.#get(slot, column.mine),
      mineEndsInMs: this.#get(slot, column.mineEndsMs) - nowMs,
      share: this.#get(slot, column.share),
      shareEndsInMs: this.#get(slot, column.shareEndsMs) - nowMs,
      gen: this.#get(slot, column.gen),
      others: this.#get(slot, column.others),
      durationMs: this.#get(slot, column.durationMs),
    };
  }

  restore(slot: number, saved: SavedWindow, nowMs: number): void {
    this.#set(slot, column.mine, saved.mine);
    this.#set(slot, column.mineEndsMs, nowMs + saved.mineEndsInMs);
    this.#beginShare(slot, saved.gen, nowMs + saved.shareEndsInMs);
    this.#set(slot, column.share, saved.share);
    this.#set(slot, column.others, saved.others);
    this.#set(slot, column.durationMs, saved.durationMs);
  }

  /** Whether the cost does not fit. */
  #isMineFull(slot: number, limit: number, cost: number, nowMs: number): boolean {
    return nowMs < this.#get(slot, column.mineEndsMs) && this.#get(slot, column.mine) + cost > limit;
  }

  /** By what is known, of a share that is open. */
  #isShareFull(slot: number, limit: number, cost: number): boolean {
    return this.#get(slot, column.share) + this.#get(slot, column.others) + cost > limit;
  }

  #openMine(slot: number, { durationMs }: RateLimit, nowMs: number): void {
    this.#set(slot, column.mine, 0);
    this.#set(slot, column.mineEndsMs, nowMs + durationMs);
  }

  #openShare(slot: number, { durationMs }: RateLimit, nowMs: number): void {
    this.#beginShare(slot, this.#nextGen(), nowMs + durationMs);
    this.#set(slot, column.durationMs, durationMs);
  }

  #beginShare(slot: number, gen: number, endsMs: number): void {
    this.#set(slot, column.previousGen, this.#get(slot, column.gen));
    this.#set(slot, column.gen, gen);
    this.#set(slot, column.shareEndsMs, endsMs);
    this.#add(slot, column.epoch, 1);
    this.#set(slot, column.share, 0);
    this.#set(slot, column.held, 0);
    this.#set(slot, column.reported, 0);
    this.#set(slot, column.others, 0);
    this.#set(slot, column.newsAtMs, -1);
    this.#set(slot, column.replicas, 1);
  }

  /** Counts from now on in the window that the others have open, taking the share along if it belongs there. */
  #join(slot: number, news: WindowNews, nowMs: number): void {
    const endsMs = nowMs + news.endsInMs;
    if (!news.counted) this.#beginShare(slot, news.gen, endsMs);
    this.#set(slot, column.gen, news.gen);
    this.#set(slot, column.shareEndsMs, endsMs);
    this.#set(slot, column.others, 0);
    this.#set(slot, column.newsAtMs, -1);
  }

  // Slots are handed out by the table, so there is always something in their rows.
  #get(slot: number, at: number): number {
    return this.#rows[slot * rowLength + at] as number;
  }

  #set(slot: number, at: number, value: number): void {
    this.#rows[slot * rowLength + at] = value;
  }

  #add(slot: number, at: number, by: number): void {
    this.#set(slot, at, this.#get(slot, at) + by);
  }

  /** How many the others have let pass by now, estimated from the latest news. */
  #othersBy(slot: number, nowMs: number): number {
    const newsAtMs = this.#get(slot, column.newsAtMs);
    const others = this.#get(slot, column.others);
    if (newsAtMs < 0) return others;
    return others + Math.floor(this.#get(slot, column.othersPerMs) * Math.min(nowMs - newsAtMs, newsMaxAgeMs));
  }
}

function counting(): () => number {
  let last = 0;
  return () => ++last;
}

/** An open window, with times from the moment of saving on. */
export interface SavedWindow {
  readonly subject: string;
  /** The API that its place counts for. Absent: it named none, or was saved by version 0.2.0, which did not know it. */
  readonly apiId?: string | undefined;
  readonly mine: number;
  readonly mineEndsInMs: number;
  readonly share: number;
  readonly shareEndsInMs: number;
  readonly gen: number;
  readonly others: number;
  readonly durationMs: number;
}

/** What a row holds. All are whole numbers or times, which a double keeps exactly. */
const column = {
  mine: 0,
  mineEndsMs: 1,
  share: 2,
  shareEndsMs: 3,
  /** Counts how often the share began again: what was taken before does not belong to this share. */
  epoch: 4,
  /** The part of the share that was taken and is not known to be used yet. Not reported: a reported count cannot go down. */
  held: 5,
  durationMs: 6,
  /** The shared window, and the one before it. */
  gen: 7,
  previousGen: 8,
  /** How much of the share was reported to the others. */
  reported: 9,
  others: 10,
  othersPerMs: 11,
  /** When the others' count was true; -1 before this window's first news. */
  newsAtMs: 12,
  replicas: 13,
} as const;
const rowLength = 14;
