import type { Ambient } from "../ambient/ambient.ts";
import { Troubles } from "../ambient/troubles.ts";
import type { ChangeFeed, FeedNews, FeedPosition } from "../store/change-feed.ts";
import type { ChangeCache } from "../store/changes.ts";
import { reasonOf } from "./database-watch.ts";

export interface ChangeFollowerDeps extends Pick<Ambient, "clock" | "log" | "metrics"> {
  readonly feed: ChangeFeed;
  /** It gets every change, and the moment up to which all changes are known. */
  readonly cache: ChangeCache;
  /** Gets all news of each round, after the cache. Every change before `currentAtMs` is part of it or of earlier news. */
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

/** Reads the change feed continuously. Passes changes to the cache, with the moment up to which all of them are known. */
export class ChangeFollower {
  readonly #deps: ChangeFollowerDeps;
  #position: FeedPosition | undefined;
  /** As of this moment of monotonic time all changes are known. */
  #currentAtMs: number;
  readonly #troubles: Troubles;
  #hasAnnouncedImports = false;
  #timer: NodeJS.Timeout | undefined;
  #isReading = false;
  #isHurried = false;
  #isStopped = false;

  constructor(deps: ChangeFollowerDeps) {
    this.#deps = deps;
    this.#troubles = new Troubles(deps.log);
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
    return this.#position !== undefined && !this.#troubles.areOpen && this.#ageMs <= currentForMs;
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
    // A read that fails may fail immediately.
    const everyMs = this.#troubles.areOpen ? defaultEveryMs : everyOkMs;
    this.#startIn((this.#isHurried ? hurriedMs : everyMs) - (clock.monotonicMs() - beganAtMs));
  }

  /** There is news: the next round begins soon. */
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
    const { clock, feed, cache, onNews } = this.#deps;
    const askedAtMs = clock.monotonicMs();
    try {
      const news = await feed.read(this.#position);
      if (this.#isStopped) return;
      this.#apply(news);
      this.#position = news.position;
      this.#currentAtMs = askedAtMs - news.ageMs;
      cache.newsIsCurrent(this.#currentAtMs);
      onNews?.(news, this.#currentAtMs);
      this.#troubles.end("the change feed is read again");
    } catch (error) {
      if (this.#isStopped) return;
      this.#troubles.begin("the change feed cannot be read", { reason: reasonOf(error) });
    }
  }

  #apply({ changed, hasImportedKeys }: FeedNews): void {
    const { log, cache } = this.#deps;
    // Caches do not forget it.
    if (hasImportedKeys && !this.#hasAnnouncedImports) cache.invalidate({ kind: "imports" });
    this.#hasAnnouncedImports = hasImportedKeys;
    if (changed === "everything") {
      // At the start there is nothing to forget.
      if (this.#position !== undefined) log.warn("changes may have been missed: everything remembered is forgotten");
      cache.invalidateAll();
    } else for (const change of changed) cache.invalidate(change);
  }
}
