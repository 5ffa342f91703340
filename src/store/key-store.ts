import type { Key, NewKey } from "../domain/key.ts";
import type { MaybePromise } from "../domain/maybe-promise.ts";
import type { KeyMutation } from "./key-mutation.ts";

/**
 * Keys and their secrets, as an engine keeps them. Every method may throw `Unavailable`. Safe to call concurrently; every
 * call sees the effect of calls that were answered before it.
 */
export type KeyStore = KeyLookup & KeyManagement;

/** What a verification needs. */
export interface KeyLookup {
  /**
   * The key with this digest of a secret, as it is now or later. What needs no waiting is answered
   * synchronously: a cached key, and every key of the embedded store. It never throws, but rejects. `fresh` bypasses the
   * cache.
   */
  findByDigest(secretDigest: string, options?: { readonly fresh: boolean }): MaybePromise<Key | undefined>;
}

/** What creates and changes keys. */
export interface KeyManagement {
  /**
   * Stores the key with its secret and counter and registers its API, all or nothing, and resolves after COMMIT. With an
   * idempotency record whose `lookup` is already kept, nothing is stored and the kept record is answered.
   */
  create(key: NewKey, idempotency?: IdempotencyRecord): Promise<CreateOutcome>;

  /** The answer that is kept under this `lookup` of an idempotency record, unless it has expired by then. */
  findKeptAnswer(lookup: string, nowMs: number): Promise<KeptAnswer | undefined>;

  /**
   * Changes the key or deletes it, all or nothing, and resolves after COMMIT. Answers the digests of the secrets that the
   * key had; undefined if there is no such key. Of several deletions of one key, one finds it.
   */
  mutate(keyId: string, mutation: KeyMutation): Promise<readonly string[] | undefined>;
}

/** An answer kept so that a repeated request gets it again. Nothing in it can be read without the caller's secrets. */
export interface IdempotencyRecord {
  readonly lookup: string;
  readonly requestDigest: string;
  readonly sealedAnswer: string;
  readonly createdAtMs: number;
  /** From then on the record counts as gone. */
  readonly expiresAtMs: number;
}

export type KeptAnswer = Pick<IdempotencyRecord, "requestDigest" | "sealedAnswer">;

export type CreateOutcome =
  | { readonly outcome: "created" }
  | { readonly outcome: "repeated"; readonly record: KeptAnswer };
