import type { PermitAsk } from "../../domain/permit-window.ts";
import type { PermitResult } from "../../store/permit-ledger.ts";

/** The way from a replica's pools to the permit ledger. */
export interface PermitChannel {
  /**
   * Sends one ask, once. Rejects with `Unavailable` if it cannot be sent or gets no answer: then it is unknown whether it
   * was settled, and it must not be sent again.
   */
  exchange(keyId: string, ask: PermitAsk): Promise<PermitResult>;
  close(): void;
}

/** Called when another replica waits for the key's permits. Only a hint: some are lost. */
export type OnRecall = (keyId: string) => void;
