import { PermitShown } from "./permit-shown.ts";
import type { PermitMessage } from "./permit-verdict.ts";

/** The permits of a pool. Each is held, in use, spent, or outdated; those of a window that is over are none of these. */
export class PermitStock extends PermitShown {
  /** The window that every count below belongs to. */
  protected gen = 0;
  /** Its permits may be spent until then. 0: no window. */
  protected spendableUntilMs = 0;
  /** Permits that can be spent. In an open window this is 0 while requests wait. */
  protected held = 0;
  /** Permits taken by requests that are not finished yet: their use is neither charged nor refused. */
  protected inUse = 0;
  /** Permits that were used, not yet reported to the ledger. */
  protected spent = 0;
  /** Permits that were charged under a limit that has been replaced since. They are returned and never spent. */
  protected outdated = 0;
  /** How many of those in use are outdated at most: which of them is not known. */
  protected outdatedInUse = 0;

  /** The permit was used: only now it counts as spent. */
  commit(gen: number): void {
    if (this.endUse(gen)) this.spent++;
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

  /** The permit was not used. */
  protected unuse(gen: number, nowMs: number): void {
    const isOutdated = this.outdatedInUse > 0;
    if (!this.endUse(gen) || !this.isOpen(nowMs)) return;
    if (isOutdated) this.outdated++;
    else this.held++;
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

  private endUse(gen: number): boolean {
    if (gen !== this.gen || this.inUse === 0) return false;
    this.inUse--;
    this.outdatedInUse = Math.min(this.outdatedInUse, this.inUse);
    return true;
  }
}
