import type { Ambient } from "../ambient/ambient.ts";
import { Unavailable } from "../domain/unavailable.ts";
import type { ChangeFeed, FeedChange, FeedNews, FeedPosition } from "./change-feed.ts";

export interface FeedRelayDeps extends Pick<Ambient, "clock"> {
  /** The store's own feed, for positions that this relay does not know. */
  readonly feed: ChangeFeed;
  readonly bounds?: FeedRelayBounds;
}

export interface FeedRelayBounds {
  /** Readings that are kept, and changes in them. The oldest are dropped. */
  readonly readingsMax: number;
  readonly changesMax: number;
  /** Changes in one answer, unless a single reading has more. The next answer has the rest. */
  readonly answerMax: number;
  /** Different unknown positions that wait for a read of the store. */
  readonly storeReadsMax: number;
}

/** About eight minutes of readings. */
const defaultBounds: FeedRelayBounds = {
  readingsMax: 1000,
  changesMax: 100_000,
  answerMax: 10_000,
  storeReadsMax: 16,
};

/** How long a read waits for the next reading. Longer than the time between two, and shorter than news may be old. */
const waitMs = 1000;

/**
 * The change feed for fronts without a store. Their coordinator reads the store's feed once for all of them, and gives
 * each reading to the relay; fronts read the relay. So the database has as many readers as there are coordinators.
 *
 * The invariant: a front gets every change (or "everything") before or with the first news that is current as of
 * its commit or later, through whichever relays it reads. A front's position is one of two kinds:
 * - One that is in this relay's log. The readings after it hold all that the front has not received.
 * - Any other: of another relay, of an earlier process, or too old. Then the store is read from that position. Numbers of
 *   transactions are not compared with the log: two readings with similar numbers may have seen different commits, and
 *   after a failover that lost commits the numbers are given out again.
 */
export class FeedRelay implements ChangeFeed {
  readonly #clock: Ambient["clock"];
  readonly #feed: ChangeFeed;
  readonly #bounds: FeedRelayBounds;
  /** Oldest first. The changes of each are those since the one before. */
  readonly #log: Reading[] = [];
  /** The number of the reading that ended at this position: of those in the log. */
  readonly #numbers = new Map<string, number>();
  /** Changes in the log. */
  #changes = 0;
  /** The latest reading after which everything counted as changed. */
  #everythingAt = 0;
  readonly #waiting = new Set<() => void>();
  /** By position: fronts that come from the same lost coordinator mostly have the same one, and share a read. */
  readonly #storeReads = new Map<string, Promise<DatedNews>>();
  #storeReadTurn: Promise<unknown> = Promise.resolve();

  constructor({ clock, feed, bounds = defaultBounds }: FeedRelayDeps) {
    this.#clock = clock;
    this.#feed = feed;
    this.#bounds = bounds;
  }

  /** The latest reading; undefined before the first. */
  get position(): FeedPosition | undefined {
    return this.#log.at(-1)?.position;
  }

  /**
   * Called with each successful reading of the store's feed, in order: each began at the position of the one before, or
   * says "everything". All changes that were committed before `currentAtMs` have been reported, by monotonic time.
   */
  onNews({ position, changed, hasImportedKeys }: FeedNews, currentAtMs: number): void {
    const number = (this.#log.at(-1)?.number ?? 0) + 1;
    if (changed === "everything") this.#dropChanges(number);
    const changes = changed === "everything" ? [] : changed;
    this.#changes += changes.length;
    this.#log.push({ number, position: withoutReported(position), changes, hasImportedKeys, currentAtMs });
    this.#numbers.set(keyOf(position), number);
    this.#dropOldest();
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const wake of waiting) wake();
  }

  /**
   * Waits for the next reading if the front knows all others, so that a front which asks again and again gets each
   * change immediately. Rejects if there is no reading within a second: silence does not mean that nothing has changed.
   * The caller bounds how many reads a front has under way.
   */
  async read(since: FeedPosition | undefined): Promise<FeedNews> {
    const askedAtMs = this.#clock.monotonicMs();
    const { position, changed, hasImportedKeys, currentAtMs } = await this.#newsSince(since);
    return { position, changed, hasImportedKeys, ageMs: Math.max(0, askedAtMs - currentAtMs) };
  }

  async #newsSince(since: FeedPosition | undefined): Promise<DatedNews> {
    if (since === undefined) return { ...(await this.#latest()), changed: "everything" };
    const latest = this.#log.at(-1);
    if (latest !== undefined && this.#numberOf(since) === latest.number) await this.#nextReading();
    // Only now: the log has moved on.
    const number = this.#numberOf(since);
    return number === undefined ? this.#shareStoreRead(withoutReported(since)) : this.#newsAfter(number);
  }

  /** `number` is in the log. */
  #newsAfter(number: number): DatedNews {
    if (number < this.#everythingAt) return { ...(this.#log.at(-1) as Reading), changed: "everything" };
    const at = number - (this.#log[0] as Reading).number;
    let upTo = this.#log[at] as Reading;
    let count = 0;
    const lists: (readonly FeedChange[])[] = [];
    for (const reading of this.#log.slice(at + 1)) {
      count += reading.changes.length;
      if (count > this.#bounds.answerMax && lists.length > 0) break;
      if (reading.changes.length > 0) lists.push(reading.changes);
      upTo = reading;
    }
    const [only = []] = lists;
    return { ...upTo, changed: lists.length > 1 ? lists.flat() : only };
  }

  #shareStoreRead(since: FeedPosition): Promise<DatedNews> {
    const key = keyOf(since);
    const shared = this.#storeReads.get(key);
    if (shared !== undefined) return shared;
    if (this.#storeReads.size >= this.#bounds.storeReadsMax)
      return Promise.reject(new Unavailable("too many fronts ask for changes since positions that are not known here"));
    // One at a time, so that the coordinator's own reading never waits for more than one of them.
    const read = this.#storeReadTurn
      .then(() => this.#readStore(since))
      .finally(() => {
        this.#storeReads.delete(key);
      });
    this.#storeReads.set(key, read);
    this.#storeReadTurn = read.catch(() => {});
    return read;
  }

  async #readStore(since: FeedPosition): Promise<DatedNews> {
    // Taken before the read, which therefore has all that was known at this position, and maybe more. Later readings
    // of this relay have the rest.
    const { position } = await this.#latest();
    const askedAtMs = this.#clock.monotonicMs();
    const { changed, hasImportedKeys, ageMs } = await this.#feed.read(since);
    return { position, changed, hasImportedKeys, currentAtMs: askedAtMs - ageMs };
  }

  async #latest(): Promise<Reading> {
    if (this.#log.length === 0) await this.#nextReading();
    return this.#log.at(-1) as Reading;
  }

  #nextReading(): Promise<void> {
    return new Promise((resolve, reject) => {
      const giveUp = () => {
        this.#waiting.delete(wake);
        reject(new Unavailable("the coordinator has not read the change feed for a second"));
      };
      // After what has arrived was read: a pause of this process must not look like a feed that cannot be read.
      const timer = setTimeout(() => setImmediate(giveUp), waitMs).unref();
      const wake = () => {
        clearTimeout(timer);
        resolve();
      };
      this.#waiting.add(wake);
    });
  }

  #numberOf(position: FeedPosition): number | undefined {
    return this.#numbers.get(keyOf(position));
  }

  /** Nothing that was reported before this reading matters any more. The positions stay known. */
  #dropChanges(everythingAt: number): void {
    this.#everythingAt = everythingAt;
    for (const reading of this.#log) reading.changes = [];
    this.#changes = 0;
  }

  /** A position goes with its reading: without the changes that came after it, it must not count as known. */
  #dropOldest(): void {
    const { readingsMax, changesMax } = this.#bounds;
    while (this.#log.length > 1 && (this.#log.length > readingsMax || this.#changes > changesMax)) {
      const { number, position, changes } = this.#log.shift() as Reading;
      this.#changes -= changes.length;
      const key = keyOf(position);
      // If the same position came again later, it is still known by that reading.
      if (this.#numbers.get(key) === number) this.#numbers.delete(key);
    }
  }
}

interface Reading {
  readonly number: number;
  readonly position: FeedPosition;
  /** Empty if everything counted as changed. */
  changes: readonly FeedChange[];
  readonly hasImportedKeys: boolean;
  readonly currentAtMs: number;
}

interface DatedNews extends Omit<FeedNews, "ageMs"> {
  readonly currentAtMs: number;
}

/** A heartbeat belongs to one reading. A feed without heartbeats has reported the same whenever a position is the same. */
function keyOf({ epoch, transaction, heartbeat }: FeedPosition): string {
  return JSON.stringify([epoch, transaction, heartbeat?.reader, heartbeat?.count]);
}

/** What was reported beyond the position saves repetition in one session of the database only. Fronts need not carry it. */
function withoutReported({ epoch, transaction, heartbeat }: FeedPosition): FeedPosition {
  return { epoch, transaction, ...(heartbeat && { heartbeat }) };
}
