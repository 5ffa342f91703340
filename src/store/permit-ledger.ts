import type { PermitAsk, PermitGrant } from "../domain/permit-window.ts";

/** The windows of strict limits, as a storage engine keeps them: many keys per commit. */
export interface PermitEngine {
  /**
   * Settles each ask, all in one commit, as `exchangePermits` does: by the engine's own clock, read after the key's row
   * is locked, and by the limit and duration that are stored at that moment. Answers one result per ask, in order, after
   * COMMIT. Applied at most once, whatever happens to the reply. An ask that cannot be settled fails alone; it throws
   * `Unavailable` when nothing is known of any: they may have been applied, and must not be sent again by anybody. No
   * key appears twice in one call.
   */
  exchange(asks: readonly KeyedPermitAsk[]): Promise<readonly PermitResult[]>;
}

export interface KeyedPermitAsk extends PermitAsk {
  readonly keyId: string;
}

export type PermitResult =
  | ({ readonly outcome: "settled" } & PermitGrant)
  /**
   * There is no such key, or it has no rate limit, or has never had a strict one. One that has become local is settled
   * all the same: a replica that has not heard of it yet goes on as before.
   */
  | { readonly outcome: "missing" }
  /** It may have been applied, and must not be sent again. */
  | { readonly outcome: "failed"; readonly reason: string };
