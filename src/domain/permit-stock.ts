import { PermitShown } from "./permit-shown.ts";
import type { PermitMessage } from "./permit-verdict.ts";

/** The permits of a pool. Each is held, in use, spent, or outdated; those of a window that is over are none of these. */
export class PermitStock extends PermitShown {
  /** The window that every count below belongs to. */
  protected gen = 0;
  /** Its permits may be spent until then. 0: no window. */
  protected spendableUntilMs = 0;
  /** Permits that can be spent. In an open window they are fewer than the smallest cost that is waited for. */
  protected held = 0;
  /** Permits taken by requests that are not finished yet: their use is neither charged nor refused. */
  protected inUse = 0;
  /** Permits that were used, not yet reported to the ledger. */
  protected spent = 0;
  /** Permits that were charged under a limit that has been replaced since. They are returned and never spent. */
  protected outdated = 0;
  /** How many of those in use are outdated at most: which of them is not known. */
  protected outdatedInUse = 0;

  /** The permits of one request were used: only now they count as spent. */
  commit(gen: number, cost = 1): void {
    this.spent += this.endUse(gen, cost);
  }

  /** Permits that are here, if their window is open. */
  get permitsHeld(): number {
    return this.held + this.outdated;
  }

  protected isOpen(nowMs: number): boolean {
    return nowMs < this.spendableUntilMs;
  }

  protected use(count: number): void {
    this.held -= count;
    this.inUse += count;
  }

  /** The permits of one request were not used. */
  protected unuse(gen: number, cost: number, nowMs: number): void {
    const { outdatedInUse } = this;
    const unused = this.endUse(gen, cost);
    if (!this.isOpen(nowMs)) return;
    const outdated = Math.min(unused, outdatedInUse);
    this.outdated += outdated;
    this.held += unused - outdated;
  }

  /** What an answer granted. An answer from before a change of the limit may have granted too much. */
  protected addGranted(message: PermitMessage, granted: number): void {
    if (this.knowsOldLimit(message)) this.outdated += granted;
    else this.held += granted;
  }

  /** Takes permits out for a message: all outdated ones, and so many of those held. */
  protected takeReturned(surplus: number): Pick<PermitMessage, "outdated"> & { readonly returned: number } {
    const { outdated } = this;
    this.outdated = 0;
    this.held -= surplus;
    return { outdated, returned: outdated + surplus };
  }

  /** What the message returned is still here, and so is what it reported. */
  protected restore(message: PermitMessage): void {
    const outdated = this.knowsOldLimit(message) ? message.ask.returned : message.outdated;
    this.outdated += outdated;
    this.held += message.ask.returned - outdated;
    this.spent += message.ask.spent;
  }

  protected outdateAll(): void {
    this.outdated += this.held;
    this.held = 0;
    this.outdatedInUse = this.inUse;
  }

  protected startStock(gen: number): void {
    this.gen = gen;
    this.spendableUntilMs = 0;
    this.held = 0;
    this.inUse = 0;
    this.spent = 0;
    this.outdated = 0;
    this.outdatedInUse = 0;
  }

  /** How many permits of the current window are no longer in use by that. */
  private endUse(gen: number, cost: number): number {
    if (gen !== this.gen) return 0;
    const ended = Math.min(cost, this.inUse);
    this.inUse -= ended;
    this.outdatedInUse = Math.min(this.outdatedInUse, this.inUse);
    return ended;
  }
}
