import type { Ambient } from "../ambient/ambient.ts";
import type { Clock } from "../ambient/clock.ts";
import type { Metrics } from "../ambient/metrics.ts";
import type { Key } from "../domain/key.ts";
import type { MaybePromise } from "../domain/maybe-promise.ts";
import type { WaitingRoom } from "../domain/waiting-room.ts";
import { CachedKey, Interner } from "./cached-key.ts";
import { DigestMap } from "./digest-map.ts";
import type { KeyChange } from "./key-changes.ts";
import type { KeyMutation, KeyStore } from "./key-store.ts";

export interface KeyCacheOptions {
  /** How long a cached key may be served; 0 turns the cache off. */
  readonly ttlMs: number;
  readonly keysMax: number;
  /** Where callers wait for a look-up. */
  readonly waitingRoom: WaitingRoom;
}

/** Most remembered changes of keys with unknown digests; above this the whole cache is cleared. */
const outdatedMax = 10_000;

/**
 * A cache of keys found in the store. Only existing keys are cached, and only for a limited time; this replica's own changes are
 * visible immediately. A miss always asks the store, also while it is already asked for the same key: that answer may be
 * older than a change that the caller knows of. The store answers callers with the same promise if they can share a look-up.
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
  /** Callers that wait for a look-up, by digest. */
  readonly #waiting = new Map<string, Waiting>();
  readonly #waitingRoom: WaitingRoom;
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
    return this.#lookUp(digest);
  }

  #lookUp(digest: string): MaybePromise<Key | undefined> {
    const waiting = this.#waiting.get(digest);
    const refusal = this.#waitingRoom.enter(waiting?.callers ?? 0);
    if (refusal !== undefined) return Promise.reject(refusal);
    const changesBefore = this.#changeCount;
    const found = this.#store.findByDigest(digest);
    const isShared = waiting !== undefined && waiting.latest.found === found;
    this.#metrics.keyCache(isShared ? "shared" : "miss");
    if (!(found instanceof Promise)) {
      this.#waitingRoom.leave();
      return this.#cache(digest, found, changesBefore);
    }
    return isShared ? this.#join(waiting) : this.#wait(digest, found, changesBefore);
  }

  #join(waiting: Waiting): Promise<Key | undefined> {
    waiting.callers++;
    waiting.latest.callers++;
    return waiting.latest.cached;
  }

  #wait(digest: string, found: Promise<Key | undefined>, changesBefore: number): Promise<Key | undefined> {
    const cached = found
      .then((key) => this.#cache(digest, key, changesBefore))
      .finally(() => {
        this.#waitingRoom.leave(lookup.callers);
        waiting.callers -= lookup.callers;
        if (waiting.callers === 0) this.#waiting.delete(digest);
      });
    const lookup: Lookup = { found, cached, callers: 1 };
    const waiting = this.#waiting.get(digest) ?? { callers: 0, latest: lookup };
    waiting.callers++;
    waiting.latest = lookup;
    this.#waiting.set(digest, waiting);
    return cached;
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
  }

  #evict(digests: readonly string[]): void {
    for (const digest of digests) this.#keys.delete(digest);
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
  }

  /** Also true for entries cached just after the change, in the same millisecond. */
  #isOutdated(key: CachedKey): boolean {
    return this.#outdated.size > 0 && key.untilMs <= (this.#outdated.get(key.id) ?? 0);
  }

  #newEntryExpiryMs(): number {
    return Math.floor(this.#clock.monotonicMs()) + this.#options.ttlMs;
  }

  #cache(digest: string, key: Key | undefined, changesBefore: number): Key | undefined {
    if (key === undefined || changesBefore !== this.#changeCount || this.#options.ttlMs === 0) return key;
    const cached = new CachedKey(key, this.#newEntryExpiryMs(), this.#interner);
    this.#keys.set(digest, cached);
    return cached;
  }
}

/** All callers that wait for one key. */
interface Waiting {
  callers: number;
  latest: Lookup;
}

interface Lookup {
  /** The store's promise. */
  readonly found: Promise<Key | undefined>;
  readonly cached: Promise<Key | undefined>;
  callers: number;
}
