import type { Picked } from "../../domain/cost-queue.ts";
import type { Deadline } from "../../domain/deadlines.ts";
import { isIdle, PermitPool, type Shortage } from "../../domain/permit-pool.ts";
import type { PermitRule } from "../../domain/permit-window.ts";
import type { RateLimit } from "../../domain/rate-limit.ts";
import { holderOfLimit, isFreeStanding } from "../../domain/subject.ts";
import type { Unavailable } from "../../domain/unavailable.ts";
import { type ApiShare, WindowPlaces } from "../../domain/window-places.ts";
import type { Permit } from "../limiter.ts";

/** A pool, and who waits for its permits. */
export interface Entry {
  readonly subject: string;
  /** The limit that the pool was opened for. A free-standing subject has a pool for each limit that requests name. */
  readonly limit: number;
  /** The place that it has in the table. */
  readonly share: ApiShare;
  /** The rule of a free-standing limit, which is part of its asks. Undefined: the ledger has the rule. */
  readonly rule: PermitRule | undefined;
  readonly pool: PermitPool;
  /** In the order in which they came: those that wait in the pool. */
  waiting: Waiting[];
  /** When the pool wants to send something. */
  dueMs: number | undefined;
  /** When an answer last left requests waiting because the ledger had too few permits left. */
  short: (Shortage & { readonly atMs: number }) | undefined;
}

export interface Waiting {
  readonly rule: RateLimit;
  readonly cost: number;
  readonly sinceMs: number;
  readonly deadline: Deadline;
  readonly resolve: (permit: Permit) => void;
  readonly reject: (error: Unavailable) => void;
}

/** Takes out the waiting requests that the pool has admitted or denied. */
export function removePicked(entry: Entry, picked: readonly Picked[]): Waiting[] {
  const gone: Waiting[] = [];
  if (picked.length === 0) return gone;
  const kept: Waiting[] = [];
  let at = 0;
  for (const { skip, count } of picked) {
    for (const goneFrom = at + skip; at < goneFrom; at++) kept.push(entry.waiting[at] as Waiting);
    for (const goneTo = at + count; at < goneTo; at++) gone.push(entry.waiting[at] as Waiting);
  }
  entry.waiting = kept.concat(entry.waiting.slice(at));
  return gone;
}

export interface PoolBounds {
  readonly poolsMax: number;
  /** For free-standing subjects, besides those for all others. */
  readonly freeStandingMax: number;
}

/**
 * The pools of a replica: one for each subject, and for a free-standing subject one for each limit that requests name.
 * Those of one key or owner are found together.
 */
export class PoolTable {
  readonly #entries = new Map<string, Entry>();
  /** The pools of a key's named limits, of an owner and of a free-standing subject. Most pools are in no group. */
  readonly #groups = new Map<string, Set<Entry>>();
  readonly #places: WindowPlaces;
  #sweep = this.#entries.values();

  constructor({ poolsMax, freeStandingMax }: PoolBounds) {
    this.#places = new WindowPlaces(poolsMax, freeStandingMax);
  }

  find(subject: string, limit: number): Entry | undefined {
    return this.#entries.get(idOf(subject, limit));
  }

  /** Adds a pool that has none of this id. It takes a place, which counts for the API; undefined: there is none for it. */
  open(subject: string, { limit, durationMs }: RateLimit, apiId: string | undefined): Entry | undefined {
    const share = this.#places.for(subject).take(apiId);
    if (share === undefined) return undefined;
    const rule = isFreeStanding(subject) ? { limit, durationMs } : undefined;
    const pool = new PermitPool();
    const entry: Entry = { subject, limit, share, rule, pool, waiting: [], dueMs: undefined, short: undefined };
    this.#entries.set(idOf(subject, limit), entry);
    const group = groupOf(subject);
    const others = group === undefined ? undefined : this.#groups.get(group);
    if (others !== undefined) others.add(entry);
    else if (group !== undefined) this.#groups.set(group, new Set([entry]));
    return entry;
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

  /** Checks so many pools, those after the ones checked before, and deletes those that are no longer needed. */
  sweep(count: number, nowMs: number): void {
    for (let i = 0; i < count; i++) {
      const next = this.#sweep.next();
      if (next.done) {
        this.#sweep = this.#entries.values();
        return;
      }
      if (isIdle(next.value.pool, nowMs)) this.delete(next.value);
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
