import type { StoredHolders } from "../domain/explanation.ts";
import type { MaybePromise } from "../domain/maybe-promise.ts";
import type { RootKeyVerdict } from "../domain/root-key.ts";
import type { Secret } from "../domain/secret.ts";

/**
 * What the holder of this text may do; undefined if it is no root key. Throws, or rejects with, `Unavailable`. The verdict
 * may be over already: whoever uses it compares its expiry with a clock.
 */
export type CheckRootKey = (presented: Secret) => MaybePromise<RootKeyVerdict | undefined>;

/** A key: by its id, or by the digest of one of its secrets. */
export type KeyName = { readonly keyId: string } | { readonly digest: string };

/**
 * Reads what an explanation is made of, for the holder of this root key. Rejects with `RootKeyRefused` if it is none, and with
 * `Forbidden` if it may not read keys.
 */
export type ReadHolders = (rootKey: Secret, name: KeyName) => Promise<StoredHolders>;
