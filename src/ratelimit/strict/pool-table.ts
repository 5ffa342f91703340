import { holderOfLimit, isFreeStanding } from "../../domain/subject.ts";
import { type ApiShare, WindowPlaces } from "../../domain/window-places.ts";

/** What the table knows of what it holds. */
export interface Pooled {
  readonly subject: string;
  /** The limit that the pool was opened for. It tells the pools of a free-standing subject apart: requests bring limits. */
  readonly limit: number;
  /** The place that it has in the table. */
  readonly share: ApiShare;
}

export interface PoolBounds {
  readonly poolsMax: number;
  /** For free-standing subjects, besides those for all others. */
  readonly freeStandingMax: number;
}

/**
 * The pools of a replica: one for each subject, or of free-standing subjects one for each limit that is brought. Those of one
 * key or owner are found together.
 */
export class PoolTable<Entry extends Pooled> {
  readonly #entries = new Map<string, Entry>();
  /** Of keys with limits that have names, of owners, and of free-standing subjects. Most pools are in no group. */
  readonly #groups = new Map<string, Set<Entry>>();
  readonly #places: WindowPlaces;
  #sweep = this.#entries.values();

  constructor({ poolsMax, freeStandingMax }: PoolBounds) {
    this.#places = new WindowPlaces(poolsMax, freeStandingMax);
  }

  find(subject: string, limit: number): Entry | undefined {
    return this.#entries.get(idOf(subject, limit));
  }

  /** Takes a place for an entry, which counts for the API; undefined: there is none for it. */
  takePlace(subject: string, apiId: string | undefined): ApiShare | undefined {
    return this.#places.for(subject).take(apiId);
  }

  add(entry: Entry): void {
    this.#entries.set(idOf(entry.subject, entry.limit), entry);
    const group = groupOf(entry.subject);
    if (group === undefined) return;
    const others = this.#groups.get(group);
    if (others === undefined) this.#groups.set(group, new Set([entry]));
    else others.add(entry);
  }

  /** Another entry may have taken its place. */
  delete(entry: Entry): void {
    const id = idOf(entry.subject, entry.limit);
    if (this.#entries.get(id) !== entry) return;
    this.#entries.delete(id);
    entry.share.places.release(entry.share);
    const group = groupOf(entry.subject);
    if (group === undefined) return;
    const others = this.#groups.get(group);
    others?.delete(entry);
    if (others?.size === 0) this.#groups.delete(group);
  }

  /** All pools of the subject. */
  ofSubject(subject: string): readonly Entry[] {
    if (isFreeStanding(subject)) return [...(this.#groups.get(subject) ?? [])];
    const entry = this.#entries.get(subject);
    return entry === undefined ? [] : [entry];
  }

  /** All pools of the key, by its id, or of the owner, by its counter. */
  ofHolder(holder: string): readonly Entry[] {
    const grouped = this.#groups.get(holder);
    const entry = this.#entries.get(holder);
    return [...(entry === undefined ? [] : [entry]), ...(grouped ?? [])];
  }

  values(): Iterable<Entry> {
    return this.#entries.values();
  }

  /** The next entries, one after the other and then from the beginning. */
  *next(count: number): Generator<Entry> {
    for (let i = 0; i < count; i++) {
      const next = this.#sweep.next();
      if (next.done) {
        this.#sweep = this.#entries.values();
        return;
      }
      yield next.value;
    }
  }
}

function idOf(subject: string, limit: number): string {
  return isFreeStanding(subject) ? `${limit} ${subject}` : subject;
}

/** Undefined for the id of a key: it is found by itself. */
function groupOf(subject: string): string | undefined {
  return isFreeStanding(subject) ? subject : holderOfLimit(subject);
}
