import type { PermitAsk } from "../../domain/permit-window.ts";
import type { PermitResult } from "../../store/permit-ledger.ts";

/** The way from a replica's pools to the permit ledger. */
export interface PermitChannel {
  /**
   * Passes one ask on, once. Rejects with `Unavailable` when there is no way or no answer: then it is not known whether
   * it was settled, and it must not be sent again.
   */
  exchange(keyId: string, ask: PermitAsk): Promise<PermitResult>;
  close(): void;
}

/** Hears that somebody else waits for the key's permits. Hints only: some are lost. */
export type OnRecall = (keyId: string) => void;
