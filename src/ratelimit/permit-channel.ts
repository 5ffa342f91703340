import type { PermitAsk } from "../domain/permit-window.ts";
import type { PermitResult } from "../store/permit-ledger.ts";

/** The way from a replica's pools to the permit ledger. */
export interface PermitChannel {
  /**
   * Sends one ask, once. Rejects with `Unavailable` if it gets no answer: then it is unknown whether it was settled, and
   * it must not be sent again.
   */
  exchange(subject: string, ask: PermitAsk, options?: ExchangeOptions): Promise<PermitAnswer>;
  /**
   * What the ledger knows of the subject's window, granting nothing. All replicas that hold permits of it are asked to return
   * them and to report what they have spent, this one too: a later answer knows of that. Changes nothing else, and can be
   * repeated. Rejects with `Unavailable` if it gets no answer.
   */
  inspect(subject: string): Promise<PermitAnswer>;
  close(): void;
}

export interface ExchangeOptions {
  /**
   * Called at most once, if the answer is late because the receiver is in doubt: another ask would go elsewhere. An
   * answer may still come.
   */
  readonly onOverdue?: () => void;
  /** By the receiver's monotonic clock: the ask is not executed after this. */
  readonly expiresAtMs?: number;
}

export type PermitAnswer = PermitResult | typeof notExecuted;

/** The ask was not settled and never will be: it was not sent, or it was too old. What it returned is still there. */
export const notExecuted = { outcome: "notExecuted" } as const;

/** Called when another replica waits for the subject's permits. Only a hint: some are lost. */
export type OnRecall = (subject: string) => void;
