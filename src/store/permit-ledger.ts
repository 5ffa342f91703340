import type { PermitAsk, PermitGrant } from "../domain/permit-window.ts";

/** The windows of strict limits in a storage engine: many subjects per commit. */
export interface PermitEngine {
  /**
   * Settles each ask, all in one commit, as `exchangePermits` does: by the engine's own clock, read after the subject's row
   * is locked, and by the limit and duration that are stored at that moment. Answers one result per ask, in order, after
   * COMMIT. Applied at most once, even if the reply is lost. An ask that cannot be settled fails alone. Throws
   * `Unavailable` if the outcome of all asks is unknown: they may have been applied, and no caller may send them again.
   * No subject appears twice in one call.
   */
  exchange(asks: readonly SubjectAsk[]): Promise<readonly PermitResult[]>;
}

export interface SubjectAsk extends PermitAsk {
  readonly subject: string;
}

export type PermitResult =
  | ({ readonly outcome: "settled" } & PermitGrant)
  /**
   * There is no such subject, or it has no rate limit, or never had a strict one. A subject whose limit became local is settled
   * as before: a replica may not know of the change yet.
   */
  | { readonly outcome: "missing" }
  /** It may have been applied, and must not be sent again. */
  | { readonly outcome: "failed"; readonly reason: string };
