import type { Key } from "../domain/key.ts";
import type { MaybePromise } from "../domain/maybe-promise.ts";
import type { Owner } from "../domain/owner.ts";

/** Look-ups of keys, for verifications. Safe to call concurrently; each sees the effect of calls answered before it. */
export interface KeyLookup {
  /**
   * The key with this digest of a secret, as it is now or later. What needs no waiting is answered
   * synchronously: a cached key, and every key of the embedded store. It never throws, but rejects.
   */
  findByDigest(secretDigest: string, options?: LookupOptions): MaybePromise<Key | undefined>;

  /**
   * False while it is known that no key was ever imported: then a text that this service cannot have made is no key, and
   * need not be looked up. Absent: it is not known here.
   */
  readonly hasImportedKeys?: boolean;
}

/** Look-ups of the records of owners, otherwise like those of keys. */
export interface OwnerLookup {
  /** The record of this owner, if there is one, as it is now or later. */
  findOwner(ownerId: string): MaybePromise<Owner | undefined>;
}

/** What keys share with others, as verifications ask for it. */
export interface OwnersOfKeys {
  /** The record of the key's owner, if there is one that concerns keys of its API. `fresh`: bypasses the cache. */
  ownerOf(key: Key, options?: { readonly fresh?: boolean }): MaybePromise<Owner | undefined>;
}

export interface LookupOptions {
  /** Bypasses the cache. */
  readonly fresh?: boolean;
  /**
   * The secret is a text that this service cannot have made. Anybody can make up such texts, so that their look-ups have
   * places and a queue of their own.
   */
  readonly foreign?: boolean;
}
