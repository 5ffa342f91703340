import { type CachedKey, toCachedKey } from "../../gen/resources/store/cached-key.ts";
import type { Ambient } from "../ambient/ambient.ts";
import type { Clock } from "../ambient/clock.ts";
import type { Metrics } from "../ambient/metrics.ts";
import type { Key } from "../domain/key.ts";
import type { MaybePromise } from "../domain/maybe-promise.ts";
import type { WaitingRoom } from "../domain/waiting-room.ts";
import type { Change, ChangeCache } from "./changes.ts";
import { DigestMap } from "./digest-map.ts";
import { Interner } from "./interner.ts";
import type { KeyLookup, LookupOptions } from "./key-lookup.ts";
import { PendingLookups } from "./pending-lookups.ts";

export interface KeyCacheOptions {
  /** How long cached keys are served after the moment as of which news was last current; 0 turns the cache off. */
  readonly ttlMs: number;
  readonly keysMax: number;
  /** Where callers wait for a look-up. */
  readonly waitingRoom: WaitingRoom;
}

/** Most keys that are outdated under unknown digests; above this the whole cache is cleared. */
const outdatedMax = 10_000;

/** The part of all places that look-ups of made-up texts can take, so that they leave room for those of real keys. */
const foreignShare = 1 / 4;
const foreign: LookupOptions = { foreign: true };

/**
 * A cache of keys found in the store. Only existing keys are cached, until they change or room is needed, and served
 * while news of changes is current (adr 18). A miss always asks the store (see `PendingLookups`).
 */
export class CachedKeyLookup implements KeyLookup, ChangeCache {
  readonly #store: KeyLookup;
  readonly #options: KeyCacheOptions;
  readonly #clock: Clock;
  readonly #metrics: Metrics;
  readonly #keys: DigestMap<CachedKey>;
  readonly #interner = new Interner();
  /** Nothing is served from the cache from this moment on. News moves it. */
  #servedUntilMs = Number.NEGATIVE_INFINITY;
  /**
   * Keys that may have changed while the digests of their secrets were unknown, and since when. They are not served from
   * the cache until younger news is current: if they changed, a report with their digests has come. Ordered by the moment.
   * Searching the cache for them would block everything for a tenth of a second.
   */
  readonly #outdated = new Map<string, number>();
  /** Look-ups under way. */
  readonly #lookups = new PendingLookups<Key | undefined>();
  /** Where callers wait whose texts this service cannot have made. */
  readonly #foreignRoom: WaitingRoom;
  #hasImportedKeys = false;

  constructor(store: KeyLookup, options: KeyCacheOptions, ambient: Pick<Ambient, "clock" | "metrics">) {
    this.#store = store;
    this.#options = options;
    this.#keys = new DigestMap(options.keysMax);
    this.#foreignRoom = options.waitingRoom.part(foreignShare);
    this.#clock = ambient.clock;
    this.#metrics = ambient.metrics;
  }

  get size(): number {
    return this.#keys.size;
  }

  /** Like everything cached, it counts while news is current. */
  get hasImportedKeys(): boolean {
    return this.#hasImportedKeys || this.#clock.monotonicMs() >= this.#servedUntilMs;
  }

  findByDigest(digest: string, options?: LookupOptions): MaybePromise<Key | undefined> {
    if (options?.fresh) this.#evict([digest]);
    const key = this.#keys.get(digest);
    if (key !== undefined && this.#clock.monotonicMs() < this.#servedUntilMs && !this.#isOutdated(key)) {
      this.#metrics.keyCache("hit");
      return key;
    }
    return this.#lookUp(digest, options?.foreign === true);
  }

  #lookUp(digest: string, isForeign: boolean): MaybePromise<Key | undefined> {
    return this.#lookups.lookUp(digest, {
      ask: () => (isForeign ? this.#store.findByDigest(digest, foreign) : this.#store.findByDigest(digest)),
      room: isForeign ? this.#foreignRoom : this.#options.waitingRoom,
      cache: (key) => this.#cache(digest, key),
      onAsked: (isShared) => this.#metrics.keyCache(isShared ? "shared" : "miss"),
    });
  }

  /** The key was changed or deleted, here or on another replica. */
  invalidate(change: Change): void {
    if (change.kind === "imports") this.#hasImportedKeys = true;
    if (change.kind !== "key") return;
    if (change.digests === undefined) this.#markOutdated(change.keyId);
    else this.#evict(change.digests);
  }

  /** Any key may have been changed or deleted. */
  invalidateAll(): void {
    this.#keys.clear();
    this.#outdated.clear();
    this.#lookups.outdateAll();
  }

  newsIsCurrent(atMs: number): void {
    this.#servedUntilMs = Math.max(this.#servedUntilMs, atMs + this.#options.ttlMs);
    for (const [keyId, sinceMs] of this.#outdated) {
      if (sinceMs >= atMs) break;
      this.#outdated.delete(keyId);
    }
  }

  #evict(digests: readonly string[]): void {
    for (const digest of digests) {
      this.#keys.delete(digest);
      this.#lookups.outdate(digest);
    }
  }

  /**
   * For a change whose outcome or digests are unknown: its reply was lost, or the key was already deleted. The key may
   * have changed anyway.
   */
  #markOutdated(keyId: string): void {
    if (this.#outdated.size >= outdatedMax) this.invalidateAll();
    this.#outdated.delete(keyId);
    this.#outdated.set(keyId, this.#clock.monotonicMs());
    // Each of these may be for the key.
    this.#lookups.outdateAll();
  }

  #isOutdated(key: CachedKey): boolean {
    return this.#outdated.size > 0 && this.#outdated.has(key.id);
  }

  #cache(digest: string, key: Key | undefined): Key | undefined {
    if (key === undefined || this.#options.ttlMs === 0) return key;
    const cached = toCachedKey(key, this.#interner);
    this.#keys.set(digest, cached);
    return cached;
  }
}
