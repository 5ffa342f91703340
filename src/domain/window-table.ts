import type { RateLimit } from "./rate-limit.ts";
import type { WindowNews, WindowReport } from "./shared-window.ts";

/** No news for this long: what is known of the others is too old to go by, and they are not extrapolated any further. */
const newsMaxAgeMs = 500;

/**
 * The windows that this replica counts in, one per key: a bounded table, in columns, so that a million of them cost
 * little memory and nothing to collect. Time is monotonic: steps of the wall clock do not reach it.
 *
 * Two counts run side by side. `mine` is this replica's own window: it opens with the first admission and is not reset
 * sooner than `duration` after it, whatever the others say; it never passes the limit, so that all replicas together
 * let pass at most replicas × limit. `share` is this replica's part of the window that all replicas share: with what is
 * known of the others it makes the replica stop early. For a key that is used on one replica both are one window.
 */
export class WindowTable {
  readonly slotsMax: number;
  readonly #slots = new Map<string, number>();
  readonly #ids: string[] = [];
  readonly #free: number[] = [];
  #hand = 0;
  readonly #nextGen: () => number;

  readonly #mine: Int32Array;
  readonly #mineEndsMs: Float64Array;
  readonly #share: Int32Array;
  readonly #shareEndsMs: Float64Array;
  /** Counts the times that the share began anew: what was taken before is none of this share's business. */
  readonly #era: Int32Array;
  /** Of the share: taken, and not yet known to be used. Not reported, since a reported count cannot go down again. */
  readonly #held: Int32Array;
  readonly #durationMs: Float64Array;
  /** The shared window, and the one before it. */
  readonly #gen: Float64Array;
  readonly #over: Float64Array;
  /** How much of the share the others have been told. */
  readonly #told: Int32Array;
  readonly #others: Int32Array;
  readonly #othersPerMs: Float64Array;
  /** When the others' count was true; -1 before this window's first news. */
  readonly #newsAtMs: Float64Array;
  readonly #replicas: Int32Array;

  /** `nextGen` gives numbers that no two windows share, on any replica; a replica that is alone just counts. */
  constructor(slotsMax: number, nextGen: () => number = counting()) {
    this.slotsMax = slotsMax;
    this.#nextGen = nextGen;
    this.#mine = new Int32Array(slotsMax);
    this.#mineEndsMs = new Float64Array(slotsMax);
    this.#share = new Int32Array(slotsMax);
    this.#shareEndsMs = new Float64Array(slotsMax);
    this.#era = new Int32Array(slotsMax);
    this.#held = new Int32Array(slotsMax);
    this.#durationMs = new Float64Array(slotsMax);
    this.#gen = new Float64Array(slotsMax);
    this.#over = new Float64Array(slotsMax);
    this.#told = new Int32Array(slotsMax);
    this.#others = new Int32Array(slotsMax);
    this.#othersPerMs = new Float64Array(slotsMax);
    this.#newsAtMs = new Float64Array(slotsMax);
    this.#replicas = new Int32Array(slotsMax);
  }

  /** How many slots are in use. */
  get size(): number {
    return this.#slots.size;
  }

  /** The key's slot, a new one if it has none; undefined when all are taken. */
  slotOf(keyId: string): number | undefined {
    return this.#slots.get(keyId) ?? this.#claim(keyId);
  }

  /** The slot of a key that has one. */
  find(keyId: string): number | undefined {
    return this.#slots.get(keyId);
  }

  idOf(slot: number): string {
    return this.#ids[slot] as string;
  }

  /** One more, if the limit allows. What was admitted is held until it is kept or given back. */
  take(slot: number, rule: RateLimit, nowMs: number): boolean {
    if (this.remaining(slot, rule.limit, nowMs) === 0) return false;
    if (nowMs >= realAt(this.#mineEndsMs, slot)) {
      this.#mine[slot] = 0;
      this.#mineEndsMs[slot] = nowMs + rule.durationMs;
    }
    if (nowMs >= realAt(this.#shareEndsMs, slot)) {
      this.#beginShare(slot, this.#nextGen(), nowMs + rule.durationMs);
      this.#durationMs[slot] = rule.durationMs;
    }
    add(this.#mine, slot, 1);
    add(this.#share, slot, 1);
    add(this.#held, slot, 1);
    return true;
  }

  /** What identifies the windows that were just charged, for `keep` and `giveBack`. */
  era(slot: number): number {
    return countAt(this.#era, slot);
  }

  mineEndsMs(slot: number): number {
    return realAt(this.#mineEndsMs, slot);
  }

  /** What was taken has been used. */
  keep(slot: number, era: number): void {
    if (this.#era[slot] === era) add(this.#held, slot, -1);
  }

  /** What was taken was not used: uncounted, in the windows in which it was counted only. */
  giveBack(slot: number, era: number, mineEndsMs: number): void {
    if (this.#mineEndsMs[slot] === mineEndsMs) add(this.#mine, slot, -1);
    if (this.#era[slot] !== era) return;
    add(this.#held, slot, -1);
    add(this.#share, slot, -1);
  }

  /** How many more would pass now. */
  remaining(slot: number, limit: number, nowMs: number): number {
    const mine = nowMs < realAt(this.#mineEndsMs, slot) ? countAt(this.#mine, slot) : 0;
    if (nowMs >= realAt(this.#shareEndsMs, slot)) return Math.max(0, limit - mine);
    const all = countAt(this.#share, slot) + this.#othersBy(slot, nowMs);
    return Math.max(0, limit - Math.max(mine, all));
  }

  /** When the window that stands in the way ends; when none is open, when it would if it opened now. */
  endsMs(slot: number, rule: RateLimit, nowMs: number): number {
    const mineEndsMs = realAt(this.#mineEndsMs, slot);
    const shareEndsMs = realAt(this.#shareEndsMs, slot);
    if (nowMs < mineEndsMs && (nowMs >= shareEndsMs || countAt(this.#mine, slot) >= rule.limit)) return mineEndsMs;
    return nowMs < shareEndsMs ? shareEndsMs : nowMs + rule.durationMs;
  }

  /** Whether the others should be told, and asked, at once: the key is cold, the news is old, or the limit is near. */
  isNewsUrgent(slot: number, limit: number, nowMs: number): boolean {
    const newsAtMs = realAt(this.#newsAtMs, slot);
    if (newsAtMs < 0 || nowMs - newsAtMs > newsMaxAgeMs) return true;
    const share = countAt(this.#share, slot);
    const left = limit - share - countAt(this.#others, slot);
    // What is left, cut in so many pieces that one unreported piece of each replica is a small part of it.
    return share - countAt(this.#told, slot) >= Math.max(1, Math.floor(left / (4 * countAt(this.#replicas, slot))));
  }

  /** Whether it refuses by what it expects of the others, not by what it knows. Then newer news can change its mind. */
  refusesByGuess(slot: number, limit: number, nowMs: number): boolean {
    if (nowMs >= realAt(this.#shareEndsMs, slot)) return false;
    const isMineFull = nowMs < realAt(this.#mineEndsMs, slot) && countAt(this.#mine, slot) >= limit;
    return !isMineFull && countAt(this.#share, slot) + countAt(this.#others, slot) < limit;
  }

  /** What to tell the others; undefined when no window is open. */
  report(slot: number, replica: string, nowMs: number): WindowReport | undefined {
    const endsInMs = Math.ceil(realAt(this.#shareEndsMs, slot) - nowMs);
    if (endsInMs <= 0) return undefined;
    return {
      replica,
      gen: realAt(this.#gen, slot),
      count: countAt(this.#share, slot) - countAt(this.#held, slot),
      endsInMs,
      durationMs: realAt(this.#durationMs, slot),
      over: realAt(this.#over, slot),
    };
  }

  /** Takes in the answer to a report. An answer to a window that is over, or older than what is known, changes nothing. */
  learn(slot: number, report: WindowReport, news: WindowNews, sentAtMs: number, nowMs: number): void {
    if (this.#gen[slot] !== report.gen || nowMs >= realAt(this.#shareEndsMs, slot)) return;
    if (news.gen !== report.gen) this.#join(slot, news, nowMs);
    if (news.counted) this.#told[slot] = Math.max(countAt(this.#told, slot), report.count);
    this.#replicas[slot] = news.replicas;

    const atMs = (sentAtMs + nowMs) / 2;
    const knownAtMs = realAt(this.#newsAtMs, slot);
    if (atMs <= knownAtMs) return;
    const more = news.others - countAt(this.#others, slot);
    if (knownAtMs >= 0) {
      const perMs = Math.max(0, more) / (atMs - knownAtMs);
      this.#othersPerMs[slot] = (realAt(this.#othersPerMs, slot) + perMs) / 2;
    } else if (news.others === 0) {
      this.#othersPerMs[slot] = 0;
    }
    // Never down: a meeting place that has forgotten them hears of them again.
    if (more > 0) this.#others[slot] = Math.min(news.others, 2_147_483_647);
    this.#newsAtMs[slot] = atMs;
  }

  /** Frees slots whose windows are over, looking at so many. */
  sweep(nowMs: number, looks: number): void {
    for (let i = Math.min(looks, this.#ids.length); i > 0; i--) {
      const slot = this.#hand;
      this.#hand = (slot + 1) % this.#ids.length;
      if (this.#ids[slot] === "" || this.#isOpen(slot, nowMs)) continue;
      this.#slots.delete(this.#ids[slot] as string);
      this.#ids[slot] = "";
      this.#free.push(slot);
    }
  }

  slotsInUse(): Iterable<number> {
    return this.#slots.values();
  }

  /** The windows that are open, to be restored later: times are relative. */
  *openWindows(nowMs: number): Generator<SavedWindow> {
    for (const [keyId, slot] of this.#slots) {
      if (!this.#isOpen(slot, nowMs)) continue;
      yield {
        keyId,
        mine: countAt(this.#mine, slot),
        mineEndsInMs: realAt(this.#mineEndsMs, slot) - nowMs,
        share: countAt(this.#share, slot),
        shareEndsInMs: realAt(this.#shareEndsMs, slot) - nowMs,
        gen: realAt(this.#gen, slot),
        others: countAt(this.#others, slot),
        durationMs: realAt(this.#durationMs, slot),
      };
    }
  }

  /** Puts a saved window back. False when the table is full. */
  restore(saved: SavedWindow, nowMs: number): boolean {
    const slot = this.slotOf(saved.keyId);
    if (slot === undefined) return false;
    this.#mine[slot] = saved.mine;
    this.#mineEndsMs[slot] = nowMs + saved.mineEndsInMs;
    this.#beginShare(slot, saved.gen, nowMs + saved.shareEndsInMs);
    this.#share[slot] = saved.share;
    this.#others[slot] = saved.others;
    this.#durationMs[slot] = saved.durationMs;
    return true;
  }

  #claim(keyId: string): number | undefined {
    const slot = this.#free.pop() ?? this.#ids.length;
    if (slot >= this.slotsMax) return undefined;
    this.#ids[slot] = keyId;
    this.#slots.set(keyId, slot);
    this.#mineEndsMs[slot] = 0;
    this.#shareEndsMs[slot] = 0;
    this.#gen[slot] = 0;
    this.#othersPerMs[slot] = 0;
    return slot;
  }

  #isOpen(slot: number, nowMs: number): boolean {
    return nowMs < realAt(this.#mineEndsMs, slot) || nowMs < realAt(this.#shareEndsMs, slot);
  }

  #beginShare(slot: number, gen: number, endsMs: number): void {
    this.#over[slot] = realAt(this.#gen, slot);
    this.#gen[slot] = gen;
    this.#shareEndsMs[slot] = endsMs;
    add(this.#era, slot, 1);
    this.#share[slot] = 0;
    this.#held[slot] = 0;
    this.#told[slot] = 0;
    this.#others[slot] = 0;
    this.#newsAtMs[slot] = -1;
    this.#replicas[slot] = 1;
  }

  /** Counts from now on in the window that the others have open, taking the share along if it belongs there. */
  #join(slot: number, news: WindowNews, nowMs: number): void {
    const endsMs = nowMs + news.endsInMs;
    if (!news.counted) {
      this.#beginShare(slot, news.gen, endsMs);
      return;
    }
    this.#gen[slot] = news.gen;
    this.#shareEndsMs[slot] = endsMs;
    this.#others[slot] = 0;
    this.#newsAtMs[slot] = -1;
  }

  /** How many the others have let pass by now, as far as can be told. */
  #othersBy(slot: number, nowMs: number): number {
    const newsAtMs = realAt(this.#newsAtMs, slot);
    const others = countAt(this.#others, slot);
    if (newsAtMs < 0) return others;
    return others + Math.floor(realAt(this.#othersPerMs, slot) * Math.min(nowMs - newsAtMs, newsMaxAgeMs));
  }
}

function counting(): () => number {
  let last = 0;
  return () => ++last;
}

// One function per kind of column: called with both kinds, one would be several times as slow.
function countAt(column: Int32Array, slot: number): number {
  return column[slot] as number;
}

function realAt(column: Float64Array, slot: number): number {
  return column[slot] as number;
}

function add(column: Int32Array, slot: number, by: number): void {
  column[slot] = countAt(column, slot) + by;
}

/** An open window, with times from the moment of saving on. */
export interface SavedWindow {
  readonly keyId: string;
  readonly mine: number;
  readonly mineEndsInMs: number;
  readonly share: number;
  readonly shareEndsInMs: number;
  readonly gen: number;
  readonly others: number;
  readonly durationMs: number;
}
