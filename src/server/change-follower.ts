import type { Ambient } from "../ambient/ambient.ts";
import type { ChangeFeed, FeedNews, FeedPosition } from "../store/change-feed.ts";
import type { Change, ChangeCache } from "../store/changes.ts";
import { reasonOf } from "./database-watch.ts";

export interface ChangeFollowerDeps extends Pick<Ambient, "clock" | "log" | "metrics"> {
  readonly feed: ChangeFeed;
  /** Are told of every change, and as of when news is current. */
  readonly caches: readonly ChangeCache[];
  /** Called for each change, after the caches; not if everything counts as changed. */
  readonly onChange: (change: Change) => void;
  /** Gets all news of each round, after the caches. Every change before `currentAtMs` is part of it or of earlier news. */
  readonly onNews?: (news: FeedNews, currentAtMs: number) => void;
  /** The shortest time between two rounds that succeed. Much shorter for a feed whose reads wait until there is news. */
  readonly everyMs?: number;
}

/** A change is in force on all replicas within two seconds: this leaves room for a distant or busy database. */
const defaultEveryMs = 500;
/** The shortest time between two rounds, if there is known to be news. */
const hurriedMs = 50;
/** News that is older counts as a feed that is down. A round fails earlier, after a second. */
const currentForMs = 2000;

/** Reads the change feed all the time and tells the caches what has changed and as of when that is all. */
export class ChangeFollower {
  readonly #deps: ChangeFollowerDeps;
  #position: FeedPosition | undefined;
  /** As of this moment of monotonic time all changes are known. */
  #currentAtMs: number;
  #isFailing = false;
  #hasToldImports = false;
  #timer: NodeJS.Timeout | undefined;
  #isReading = false;
  #isHurried = false;
  #isStopped = false;

  constructor(deps: ChangeFollowerDeps) {
    this.#deps = deps;
    this.#currentAtMs = deps.clock.monotonicMs();
    const { metrics } = deps;
    const up =
      "1 while changes that other processes make are known within two seconds, 0 while the feed cannot be read.";
    metrics.gauge("latchkey_change_feed_up", up, () => Number(this.isUp));
    const age = "Seconds since all changes were last known.";
    metrics.gauge("latchkey_change_feed_age_seconds", age, () => this.#ageMs / 1000);
  }

  /** False before the first round. */
  get isUp(): boolean {
    return this.#position !== undefined && !this.#isFailing && this.#ageMs <= currentForMs;
  }

  get #ageMs(): number {
    return this.#deps.clock.monotonicMs() - this.#currentAtMs;
  }

  /** Begins with one round and goes on by itself. Resolves after the first round, also if that failed. */
  async start(): Promise<void> {
    const { clock, everyMs: everyOkMs = defaultEveryMs } = this.#deps;
    const beganAtMs = clock.monotonicMs();
    this.#isHurried = false;
    this.#isReading = true;
    await this.round();
    this.#isReading = false;
    if (this.#isStopped) return;
    // A read that fails may fail at once.
    const everyMs = this.#isFailing ? defaultEveryMs : everyOkMs;
    this.#startIn((this.#isHurried ? hurriedMs : everyMs) - (clock.monotonicMs() - beganAtMs));
  }

  /** There is news: the next round begins at once. */
  hurry(): void {
    // Not again: news that comes all the time would put the round off for ever.
    if (this.#isHurried) return;
    // A round under way may have begun before the change.
    this.#isHurried = true;
    if (this.#isStopped || this.#isReading || this.#timer === undefined) return;
    clearTimeout(this.#timer);
    this.#startIn(hurriedMs);
  }

  #startIn(pauseMs: number): void {
    this.#timer = setTimeout(() => void this.start(), Math.max(0, pauseMs)).unref();
  }

  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
  }

  /** Reads once. Never rejects. */
  async round(): Promise<void> {
    const { clock, log, feed, caches, onNews } = this.#deps;
    const askedAtMs = clock.monotonicMs();
    try {
      const news = await feed.read(this.#position);
      if (this.#isStopped) return;
      this.#apply(news);
      this.#position = news.position;
      this.#currentAtMs = askedAtMs - news.ageMs;
      for (const cache of caches) cache.newsIsCurrent(this.#currentAtMs);
      onNews?.(news, this.#currentAtMs);
      if (this.#isFailing) log.info("the change feed is read again");
      this.#isFailing = false;
    } catch (error) {
      if (this.#isStopped) return;
      if (!this.#isFailing) log.warn("the change feed cannot be read", { reason: reasonOf(error) });
      this.#isFailing = true;
    }
  }

  #apply({ changed, hasImportedKeys }: FeedNews): void {
    const { log, caches, onChange } = this.#deps;
    // Caches do not forget it.
    if (hasImportedKeys && !this.#hasToldImports) for (const cache of caches) cache.invalidate({ kind: "imports" });
    this.#hasToldImports = hasImportedKeys;
    if (changed === "everything") {
      // At the start there is nothing to forget.
      if (this.#position !== undefined) log.warn("changes may have been missed: everything remembered is forgotten");
      for (const cache of caches) cache.invalidateAll();
      return;
    }
    for (const change of changed) {
      for (const cache of caches) cache.invalidate(change);
      onChange(change);
    }
  }
}
