import { PermitMessages } from "./permit-messages.ts";
import type { PermitMessage } from "./permit-verdict.ts";
import type { PermitGrant } from "./permit-window.ts";
import type { RateLimitState } from "./rate-limit.ts";

/** What the ledger has told a pool of its window, and what callers are shown of it. */
export class PermitShown extends PermitMessages {
  /** From the ledger's last answer. */
  protected leftInLedger = 0;
  protected limit = 0;
  protected shownEndMs = 0;
  /** The smallest `remaining` that was shown in this window, without what was given back. */
  protected shownMin = Number.POSITIVE_INFINITY;
  /** The message whose answer told `limit`. */
  protected limitToldBy = 0;
  /** The first message whose answer can know the limit since it was last changed. */
  protected limitKnownFrom = 0;

  /** What answers tell of the limit that are already on their way no longer holds. */
  protected forgetLimit(): void {
    this.limitKnownFrom = this.lastMessageNumber + 1;
  }

  /** Whether an answer to this message tells a limit that has been replaced since. */
  protected knowsOldLimit({ number }: PermitMessage): boolean {
    return number < this.limitKnownFrom;
  }

  protected noteTold({ number }: PermitMessage, { left, limit, endsAtMs }: PermitGrant): void {
    this.shownMin = Math.max(0, this.shownMin + limit - this.limit);
    this.leftInLedger = left;
    this.limit = limit;
    this.limitToldBy = number;
    this.shownEndMs = endsAtMs;
  }

  /**
   * What a caller is shown, who has asked for more than there is if `below` says how much. `remaining` never rises within a
   * window, but by what the limit does and what requests give back. After a change the limit is the caller's until the
   * ledger reports it.
   */
  protected shown(held: number, callersLimit: number, below: number): RateLimitState {
    const limit = this.limitToldBy < this.limitKnownFrom ? callersLimit : this.limit;
    const lowest = Math.min(this.shownMin, this.leftInLedger + held);
    // A refused caller always sees less than it wanted, even if other replicas hold permits that they will return.
    const remaining = Math.max(0, Math.min(lowest + limit - this.limit, below - 1));
    this.shownMin = Math.min(lowest, remaining - limit + this.limit);
    return { limit, remaining, resetMs: this.shownEndMs };
  }
}
