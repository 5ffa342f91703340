import type { Ambient } from "../ambient/ambient.ts";
import type { Clock } from "../ambient/clock.ts";
import { sha256 } from "../ambient/crypto.ts";
import type { Key } from "../domain/key.ts";
import { andThen, type MaybePromise } from "../domain/maybe-promise.ts";
import { concernsApi, type Owner } from "../domain/owner.ts";
import type { KeyCacheOptions } from "./cached-key-lookup.ts";
import type { Change, ChangeCache } from "./changes.ts";
import type { OwnerLookup, OwnersOfKeys } from "./key-lookup.ts";
import { PendingLookups } from "./pending-lookups.ts";

/** Most owners that are known to be new. Beyond that every owner counts as one. */
const newOwnersMax = 100_000;

/**
 * A cache of the records of owners, apart from keys: one change of an owner concerns all its keys. It is served while news of
 * changes is current, as keys are (adr 35). A key says whether its owner had a record when the key was looked up, so that of
 * owners without one nothing is asked. That there is no record is cached like a record.
 */
export class CachedOwners implements OwnersOfKeys, ChangeCache {
  readonly #store: OwnerLookup;
  readonly #clock: Clock;
  readonly #options: KeyCacheOptions;
  /** By id; the one that was learnt first makes room. */
  readonly #owners = new Map<string, Owner | undefined>();
  /** Owners whose records were made after keys of theirs may have been cached. */
  readonly #newOwners = new Set<string>();
  #anyMayBeNew = false;
  readonly #lookups = new PendingLookups<Owner | undefined>();
  #servedUntilMs = Number.NEGATIVE_INFINITY;

  constructor(store: OwnerLookup, options: KeyCacheOptions, { clock }: Pick<Ambient, "clock">) {
    this.#store = store;
    this.#clock = clock;
    this.#options = options;
  }

  get size(): number {
    return this.#owners.size;
  }

  ownerOf({ ownerId, apiId, hasOwnerRecord }: Key, options?: { fresh?: boolean }): MaybePromise<Owner | undefined> {
    if (ownerId === undefined || !(hasOwnerRecord || this.#mayBeNew(ownerId))) return undefined;
    return andThen(this.#find(ownerId, options?.fresh === true), (owner) =>
      owner !== undefined && concernsApi(owner, apiId) ? owner : undefined,
    );
  }

  #mayBeNew(ownerId: string): boolean {
    return this.#anyMayBeNew || (this.#newOwners.size > 0 && this.#newOwners.has(ownerId));
  }

  #find(ownerId: string, isFresh: boolean): MaybePromise<Owner | undefined> {
    if (isFresh) this.#evict(ownerId);
    const owner = this.#owners.get(ownerId);
    const isKnown = owner !== undefined || this.#owners.has(ownerId);
    if (isKnown && this.#clock.monotonicMs() < this.#servedUntilMs) return owner;
    return this.#lookups.lookUp(sha256(ownerId), {
      ask: () => this.#store.findOwner(ownerId),
      room: this.#options.waitingRoom,
      cache: (found) => this.#cache(ownerId, found),
    });
  }

  invalidate(change: Change): void {
    if (change.kind !== "owner") return;
    this.#evict(change.ownerId);
    if (!change.isNew) return;
    this.#newOwners.add(change.ownerId);
    if (this.#newOwners.size <= newOwnersMax) return;
    this.#newOwners.clear();
    this.#anyMayBeNew = true;
  }

  /** The keys are forgotten too: those that are looked up from now on say what is so. */
  invalidateAll(): void {
    this.#owners.clear();
    this.#newOwners.clear();
    this.#anyMayBeNew = false;
    this.#lookups.outdateAll();
  }

  newsIsCurrent(atMs: number): void {
    this.#servedUntilMs = Math.max(this.#servedUntilMs, atMs + this.#options.ttlMs);
  }

  #evict(ownerId: string): void {
    this.#owners.delete(ownerId);
    this.#lookups.outdate(sha256(ownerId));
  }

  #cache(ownerId: string, owner: Owner | undefined): Owner | undefined {
    if (this.#options.ttlMs === 0) return owner;
    this.#owners.set(ownerId, owner);
    if (this.#owners.size > this.#options.keysMax) {
      const [oldest] = this.#owners.keys();
      this.#owners.delete(oldest as string);
    }
    return owner;
  }
}
