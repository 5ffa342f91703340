import type { NewKey } from "../../src/domain/key.ts";
import { limitsOfKey, type NamedLimit } from "../../src/domain/limits.ts";
import { exchangePermits, neverOpened, type PermitWindow, windowMadeAt } from "../../src/domain/permit-window.ts";
import { holderOfLimit, isFreeStanding } from "../../src/domain/subject.ts";
import type { PermitResult, SubjectAsk } from "../../src/store/permit-ledger.ts";

/** The windows of the strict limits in the plain store. */
export class MemoryWindows extends Map<string, PermitWindow> {
  readonly #exchange: typeof exchangePermits;

  constructor(rule = exchangePermits) {
    super();
    this.#exchange = rule;
  }

  /** For strict limits that have none. */
  addFor(key: NewKey): void {
    for (const { subject, rule } of limitsOf(key)) {
      if (rule.mode === "strict" && !this.has(subject)) this.set(subject, neverOpened);
    }
  }

  /** An owner's id can be used again: its windows begin with the clock. */
  addForOwner(limits: readonly NamedLimit[], nowMs: number): void {
    for (const { subject, rule } of limits) {
      if (rule.mode === "strict" && !this.has(subject)) this.set(subject, windowMadeAt(nowMs, rule));
    }
  }

  /** `holder`: the id of the key, or the subject of the owner's counter. */
  deleteOf(holder: string): void {
    for (const subject of this.keys()) if ((holderOfLimit(subject) ?? subject) === holder) this.delete(subject);
  }

  /** `limitsOf`: those of the holder, as of `deleteOf`. */
  exchange(
    { subject, ...ask }: SubjectAsk,
    limitsOf: (holder: string) => readonly Limit[],
    nowMs: number,
  ): PermitResult {
    const limits = limitsOf(holderOfLimit(subject) ?? subject);
    const rule = ask.sentRule ?? limits.find((limit) => limit.subject === subject)?.rule;
    if (ask.sentRule && !this.has(subject)) this.set(subject, windowMadeAt(nowMs, ask.sentRule));
    const before = this.get(subject);
    if (rule === undefined || before === undefined) return { outcome: "missing" };
    const { window, grant } = this.#exchange(before, ask, rule, nowMs);
    this.set(subject, window);
    return { outcome: "settled", ...grant };
  }

  /** Free-standing windows go when they have been over for a day. */
  tidy(nowMs: number): void {
    for (const [subject, { endsAtMs }] of this)
      if (isFreeStanding(subject) && endsAtMs < nowMs - 86_400_000) this.delete(subject);
  }
}

type Limit = Pick<NamedLimit, "subject" | "rule">;

export function limitsOf({ id, rateLimit, rateLimits = [] }: NewKey): readonly Limit[] {
  const named = limitsOfKey(id, rateLimits);
  return rateLimit === undefined ? named : [{ subject: id, rule: rateLimit }, ...named];
}
