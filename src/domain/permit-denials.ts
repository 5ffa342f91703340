import { CostQueue, type Picked } from "./cost-queue.ts";
import * as tuning from "./permit-pool-tuning.ts";
import { outOfReach, type ShortLevel, withinReach } from "./permit-shortages.ts";
import { PermitStock } from "./permit-stock.ts";
import type { PermitMessage, PermitVerdict, Shortage } from "./permit-verdict.ts";
import type { PermitGrant } from "./permit-window.ts";

/** The requests that wait for permits of a pool: which of them are denied, and for how long that is remembered. */
export class PermitDenials extends PermitStock {
  /**
   * The window's end by the ledger's last answer. Until then its state is shown and denials hold. It differs from
   * `spendableUntilMs` only if the ledger's clock was set back.
   */
  protected windowEndsMs = 0;
  protected waiting = new CostQueue();
  /** From the ledger's last answer. */
  protected isClockBehind = false;
  /** No message is sent before this if all requests wait for more than is within reach: the pause between two attempts. */
  protected retryAtMs = 0;
  /** Since when the ledger's answers have not covered which of the waiting requests. */
  protected shortLevels: readonly ShortLevel[] = [];
  /** Until then requests for more than `deniedAbove` are denied from memory. Cheaper ones are still asked for. */
  protected deniedUntilMs = 0;
  protected deniedAbove = 0;

  /** The largest cost that the next message could bring, as far as is known: it returns what is held, if requests wait. */
  protected get reach(): number {
    return this.leftInLedger + this.held;
  }

  /** Costs that are within reach (again) are not out of it any longer. */
  protected noteReach(): void {
    const { reach } = this;
    this.deniedAbove = Math.max(this.deniedAbove, reach);
    this.shortLevels =
      this.waiting.length === 0
        ? this.shortLevels.filter(({ above }) => above > reach)
        : withinReach(this.shortLevels, reach);
  }

  /** So many are left in the ledger, as somebody else was told: costs up to that are asked for again. */
  noteLeft({ gen, left }: Pick<PermitGrant, "gen" | "left">): void {
    if (gen === this.gen) this.deniedAbove = Math.max(this.deniedAbove, left);
  }

  /** No request opens a window whose cost is above the limit. The limit may be lower than the one that its caller knows. */
  protected onNoWindow(message: PermitMessage, { limit }: PermitGrant): PermitVerdict {
    return this.verdict(none, this.knowsOldLimit(message) ? none : this.waiting.takeAbove(limit), true);
  }

  /**
   * Requests wait for more than is within reach, the cheapest of them for `cost`. They are denied if it cannot come back,
   * or has not for too long.
   */
  protected onShortage(admitted: readonly Picked[], cost: number, elsewhere: number, nowMs: number): PermitVerdict {
    this.shortLevels = outOfReach(this.shortLevels, this.reach, cost, nowMs);
    const isFinal = elsewhere <= 0 && this.inUse === 0 && this.outdated === 0;
    const overdue = this.shortLevels.findLast(({ sinceMs }) => nowMs - sinceMs >= this.shortMaxMs());
    if (isFinal) this.rememberFinal(nowMs);
    else if (overdue !== undefined) this.rememberOverdue(overdue, nowMs);
    // What is above the limit cannot come back.
    const above = isFinal ? this.reach : Math.min(overdue?.above ?? this.limit, this.limit);
    const denied = this.waiting.takeAbove(above);
    const verdict = this.verdict(admitted, denied, isFinal || (overdue === undefined && denied.length > 0));
    if (this.waiting.smallestAbove(this.reach) === undefined) return verdict;
    const shortMs = nowMs - (this.shortLevels.at(-1) as ShortLevel).sinceMs;
    this.retryAtMs = nowMs + Math.min(tuning.retryMaxMs, Math.max(tuning.retryMinMs, shortMs / 2));
    return { ...verdict, short: this.shortage() };
  }

  protected rememberFinal(nowMs: number): void {
    const untilMs = this.isClockBehind ? nowMs + tuning.clockBehindDenialMs : this.windowEndsMs;
    this.rememberDenial(this.reach, untilMs, nowMs);
  }

  /** Permits lost by a crash never come back. So the pauses grow, but some attempts remain before the window's end. */
  protected rememberOverdue({ above, sinceMs }: ShortLevel, nowMs: number): void {
    const partMs = (this.windowEndsMs - nowMs) / tuning.retriesMin;
    this.rememberDenial(above, nowMs + Math.max(tuning.holdMs, Math.min(nowMs - sinceMs, partMs)), nowMs);
  }

  /** A denial that says less than one that still holds is not remembered. */
  protected rememberDenial(above: number, untilMs: number, nowMs: number): void {
    const endsMs = Math.min(this.windowEndsMs, untilMs);
    if (nowMs < this.deniedUntilMs && this.deniedAbove <= above && this.deniedUntilMs >= endsMs) return;
    this.deniedUntilMs = endsMs;
    this.deniedAbove = above;
  }

  /** The limit or the window that they were made under no longer holds. */
  protected forgetDenials(): void {
    this.deniedUntilMs = 0;
    this.shortLevels = [];
  }

  protected shortage(): Shortage {
    const remaining = Math.min(this.shownMin, this.reach);
    return { gen: this.gen, above: this.reach, state: { limit: this.limit, remaining, resetMs: this.shownEndMs } };
  }

  protected verdict(admitted = none, denied = none, isFinal = false): PermitVerdict {
    return { gen: this.gen, admitted, denied, isFinal, short: undefined };
  }
}

const none: readonly Picked[] = [];
