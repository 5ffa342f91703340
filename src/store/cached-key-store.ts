import type { Ambient } from "../ambient/ambient.ts";
import type { Clock } from "../ambient/clock.ts";
import type { Metrics } from "../ambient/metrics.ts";
import type { Key } from "../domain/key.ts";
import type { MaybePromise } from "../domain/maybe-promise.ts";
import { Unavailable } from "../domain/unavailable.ts";
import type { WaitingRoom } from "../domain/waiting-room.ts";
import { CachedKey, Interner } from "./cached-key.ts";
import { DigestMap } from "./digest-map.ts";
import type { KeyChange } from "./key-changes.ts";
import type { KeyMutation, KeyStore } from "./key-store.ts";

export interface KeyCacheOptions {
  /** How long a cached key may be served; 0 turns the cache off. */
  readonly ttlMs: number;
  readonly keysMax: number;
  /** Most concurrent look-ups in the store; more are queued. So a flood of unknown keys cannot overload the store. */
  readonly lookupsMax: number;
  /** Most queued look-ups; one more is refused with `Unavailable`. */
  readonly lookupsQueuedMax: number;
  /** Where callers wait for a look-up, also callers that share one. */
  readonly waitingRoom: WaitingRoom;
}

/** Most remembered changes of keys with unknown digests; above this the whole cache is cleared. */
const outdatedMax = 10_000;

/**
 * A cache of keys found in the store. Only existing keys are cached, and only for a limited time; this replica's own changes are
 * visible immediately. Concurrent misses of the same key share one look-up.
 */
export class CachedKeyStore implements KeyStore {
  readonly #store: KeyStore;
  readonly #options: KeyCacheOptions;
  readonly #clock: Clock;
  readonly #metrics: Metrics;
  readonly #keys: DigestMap<CachedKey>;
  readonly #interner = new Interner();
  /**
   * Keys that changed while the digests of their secrets were unknown. A cached entry of such a key that expires at the
   * value or earlier may be outdated. Ordered by the value. Searching the cache for them would block everything for a tenth of a
   * second.
   */
  readonly #outdated = new Map<string, number>();
  readonly #inFlight = new Map<string, Lookup>();
  readonly #waitingRoom: WaitingRoom;
  readonly #queue: QueuedLookup[] = [];
  #lookups = 0;
  /** Counts changes. A look-up that began before a change must not cache the old state of the key. */
  #changeCount = 0;

  readonly create: KeyStore["create"];
  readonly findKeptAnswer: KeyStore["findKeptAnswer"];

  constructor(store: KeyStore, options: KeyCacheOptions, ambient: Pick<Ambient, "clock" | "metrics">) {
    this.#store = store;
    this.#options = options;
    this.#keys = new DigestMap(options.keysMax);
    this.#waitingRoom = options.waitingRoom;
    this.#clock = ambient.clock;
    this.#metrics = ambient.metrics;
    this.create = store.create.bind(store);
    this.findKeptAnswer = store.findKeptAnswer.bind(store);
  }

  get size(): number {
    return this.#keys.size;
  }

  findByDigest(digest: string, options?: { readonly fresh: boolean }): MaybePromise<Key | undefined> {
    if (options?.fresh) this.#evict([digest]);
    const key = this.#keys.get(digest);
    if (key !== undefined && this.#clock.monotonicMs() < key.untilMs && !this.#isOutdated(key)) {
      this.#metrics.keyCache("hit");
      return key;
    }
    return this.#joinOrStart(digest);
  }

  #joinOrStart(digest: string): Promise<Key | undefined> {
    const inFlight = this.#inFlight.get(digest);
    this.#metrics.keyCache(inFlight === undefined ? "miss" : "shared");
    const refusal = this.#waitingRoom.enter(inFlight?.callers ?? 0);
    if (refusal !== undefined) return Promise.reject(refusal);
    if (inFlight === undefined) return this.#start(digest).found;
    inFlight.callers++;
    return inFlight.found;
  }

  #start(digest: string): Lookup {
    const found = this.#lookUp(digest).finally(() => {
      this.#waitingRoom.leave(lookup.callers);
      // After a change in the meantime, this entry may already belong to a newer look-up.
      if (this.#inFlight.get(digest) === lookup) this.#inFlight.delete(digest);
    });
    const lookup = { found, callers: 1 };
    this.#inFlight.set(digest, lookup);
    return lookup;
  }

  async mutate(keyId: string, mutation: KeyMutation): Promise<readonly string[] | undefined> {
    let digests: readonly string[] | undefined;
    try {
      digests = await this.#store.mutate(keyId, mutation);
      return digests;
    } finally {
      this.invalidate({ keyId, digests });
    }
  }

  /** The key was changed or deleted, here or on another replica. */
  invalidate({ keyId, digests }: KeyChange): void {
    this.#changeCount++;
    if (digests === undefined) this.#markOutdated(keyId);
    else this.#evict(digests);
  }

  /** Other replicas may have changed or deleted any key. */
  invalidateAll(): void {
    this.#changeCount++;
    this.#keys.clear();
    this.#outdated.clear();
    this.#inFlight.clear();
  }

  #evict(digests: readonly string[]): void {
    for (const digest of digests) {
      this.#keys.delete(digest);
      this.#inFlight.delete(digest);
    }
  }

  /**
   * For a change whose outcome or digests are unknown: its reply was lost, or the key was already deleted. The key may
   * have changed anyway.
   */
  #markOutdated(keyId: string): void {
    const nowMs = this.#clock.monotonicMs();
    for (const [known, untilMs] of this.#outdated) {
      if (nowMs < untilMs) break;
      this.#outdated.delete(known);
    }
    if (this.#outdated.size >= outdatedMax) this.invalidateAll();
    this.#outdated.delete(keyId);
    this.#outdated.set(keyId, this.#newEntryExpiryMs());
    // One of these may be for the key: later callers must not join it.
    this.#inFlight.clear();
  }

  /** Also true for entries cached just after the change, in the same millisecond. */
  #isOutdated(key: CachedKey): boolean {
    return this.#outdated.size > 0 && key.untilMs <= (this.#outdated.get(key.id) ?? 0);
  }

  #newEntryExpiryMs(): number {
    return Math.floor(this.#clock.monotonicMs()) + this.#options.ttlMs;
  }

  async #lookUp(digest: string): Promise<Key | undefined> {
    await this.#waitForPlace();
    try {
      const changesBefore = this.#changeCount;
      const key = await this.#store.findByDigest(digest);
      return key !== undefined && changesBefore === this.#changeCount ? this.#cache(digest, key) : key;
    } catch (error) {
      // The queued look-ups would wait just as long for the same error.
      if (error instanceof Unavailable && !error.affectsOneKeyOnly)
        for (const queued of this.#queue.splice(0)) queued.reject(error);
      throw error;
    } finally {
      // The place goes directly to the next in the queue: a new caller in between would be one too many.
      const next = this.#queue.shift();
      if (next === undefined) this.#lookups--;
      else next.start();
    }
  }

  async #waitForPlace(): Promise<void> {
    if (this.#lookups < this.#options.lookupsMax) {
      this.#lookups++;
      return;
    }
    if (this.#queue.length >= this.#options.lookupsQueuedMax)
      throw new Unavailable("too many keys are being looked up");
    await new Promise<void>((start, reject) => {
      this.#queue.push({ start, reject });
    });
  }

  #cache(digest: string, key: Key): Key {
    if (this.#options.ttlMs === 0) return key;
    const cached = new CachedKey(key, this.#newEntryExpiryMs(), this.#interner);
    this.#keys.set(digest, cached);
    return cached;
  }
}

interface Lookup {
  readonly found: Promise<Key | undefined>;
  callers: number;
}

/** A look-up in the queue. */
interface QueuedLookup {
  readonly start: () => void;
  readonly reject: (error: Unavailable) => void;
}
