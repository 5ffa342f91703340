import { twelveBitsOf } from "./digest-map.ts";

/** What stays in a table for a moment, under a digest. */
export interface Pending<Entry> {
  readonly digest: string;
  /** The next one in the same bucket. Only the table sets it. */
  next: Entry | undefined;
}

/** About as many as wait at the same time under load. Beyond that, buckets become longer. */
const buckets = 1024;

/**
 * Entries that come and go, by digest; several may have the same one. Not a `Map`: that makes a new table after every few
 * deletions, and each old table holds its entries and the table after it. Once the first one is old for the garbage
 * collector, all that follow are kept until the next collection of everything, a kilobyte for each entry that was ever there.
 */
export class PendingTable<Entry extends Pending<Entry>> {
  readonly #buckets: (Entry | undefined)[] = Array.from({ length: buckets }, () => undefined);

  add(entry: Entry): void {
    const bucket = bucketOf(entry.digest);
    entry.next = this.#buckets[bucket];
    this.#buckets[bucket] = entry;
  }

  remove(entry: Entry): void {
    const bucket = bucketOf(entry.digest);
    let previous: Entry | undefined;
    for (let at = this.#buckets[bucket]; at !== undefined; previous = at, at = at.next) {
      if (at !== entry) continue;
      if (previous === undefined) this.#buckets[bucket] = entry.next;
      else previous.next = entry.next;
      entry.next = undefined;
      return;
    }
  }

  /** The one that was added last. */
  latest(digest: string): Entry | undefined {
    return nextOf(this.#buckets[bucketOf(digest)], digest);
  }

  /** The one that was added before this one, under the same digest. */
  before(entry: Entry): Entry | undefined {
    return nextOf(entry.next, entry.digest);
  }

  forEach(visit: (entry: Entry) => void): void {
    for (const first of this.#buckets) for (let at = first; at !== undefined; at = at.next) visit(at);
  }
}

function nextOf<Entry extends Pending<Entry>>(first: Entry | undefined, digest: string): Entry | undefined {
  let at = first;
  while (at !== undefined && at.digest !== digest) at = at.next;
  return at;
}

function bucketOf(digest: string): number {
  return twelveBitsOf(digest) & (buckets - 1);
}
