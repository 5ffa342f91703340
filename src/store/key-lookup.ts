import type { Key } from "../domain/key.ts";
import type { MaybePromise } from "../domain/maybe-promise.ts";

/** Look-ups of keys, for verifications. Safe to call concurrently; each sees the effect of calls answered before it. */
export interface KeyLookup {
  /**
   * The key with this digest of a secret, as it is now or later. What needs no waiting is answered
   * synchronously: a cached key, and every key of the embedded store. It never throws, but rejects. `fresh` bypasses the
   * cache.
   */
  findByDigest(secretDigest: string, options?: { readonly fresh: boolean }): MaybePromise<Key | undefined>;
}
