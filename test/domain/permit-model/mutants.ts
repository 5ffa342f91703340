import { PermitPool } from "../../../src/domain/permit-pool.ts";
import type { PermitMessage, PermitVerdict } from "../../../src/domain/permit-verdict.ts";
import { exchangePermits, type PermitGrant } from "../../../src/domain/permit-window.ts";
import { type Parts, product } from "./scope.ts";

export interface Mutant {
  readonly name: string;
  /** The promise that it breaks, and the scope in which that is found. */
  readonly breaks: "S1" | "S2" | "E1" | "C1" | "twice" | "locked" | "whole";
  readonly scope: string;
  readonly parts: Parts;
}

const setBack = "the ledger's clock is set back, and right again";
const waitersLeave = "waiters leave while the clock is behind";
const declinedLate = "overdue asks are declined after their window";
const overdueLate = "overdue answers outlive their window";
const overdueFills = "an overdue answer comes after another";
const shortened = "the duration changes while the clock is set";

const loweredRefused = "the limit is lowered while uses are refused";
const loweredDeclined = "the limit is lowered while asks are declined";
const loweredFills = "permits come back when the limit is lowered";

const halves = "two replicas hold a half each";
const largeUnderLoad = "a large cost waits among small ones";

/** The product with one thing wrong. */
export const mutants: readonly Mutant[] = [
  mutant("the ledger takes a block back after a while", "S1", "messages get lost", { ...product, reclaims: true }),
  mutant("a repeated ask is applied twice", "S1", "messages come twice", { ...product, repeats: true }),
  mutant("a return counts for the next window", "S1", "windows end", { ...product, exchange: creditAnyWindow }),
  mutant("returned permits are zeroed after the send", "S1", "messages get lost", withPool(ZeroAfterSend())),
  mutant("a lost return is sent again", "S1", "messages get lost", { ...product, resends: true }),
  mutant("a lost return is taken for not sent", "S1", "messages get lost", withPool(CreditsLost())),
  mutant("a second copy of an answer counts", "S1", "messages come twice", withPool(CountsCopies())),
  mutant("a permit given back late counts in a later window", "S1", "uses are refused", withPool(GivesBackAnywhere())),
  mutant("a declined ask is executed all the same", "S1", "asks are declined", { ...product, executesDeclined: true }),
  mutant("a second copy of a refusal counts", "S1", "asks are declined", withPool(CountsRefusalTwice())),
  mutant("a declined return counts in a later window", "S1", declinedLate, withPool(CreditsAnyWindow())),
  mutant("an overdue return is taken back", "S1", "answers are overdue", withPool(TakesBackOverdue())),
  mutant("an overdue return is sent again", "S1", "answers are overdue", withPool(RepeatsOverdue())),
  mutant("an overdue grant counts in a later window", "S1", overdueLate, withPool(CreditsLaterWindow())),
  mutant("the end is counted from the answer's arrival", "S2", "answers are late", withPool(EndsFromReceipt())),
  mutant("permits are kept past the end", "S2", "uses are refused", withPool(KeepsForEver())),
  mutant("a grant that arrives late is used at once", "S2", "answers are late", withPool(AcceptsLate())),
  mutant("the end is clamped by the rule of now", "twice", shortened, { ...product, exchange: clampByRule }),
  mutant("the clamped end overwrites the true one", "twice", setBack, { ...product, exchange: clampOverwrites }),
  mutant("the clamped end counts when the clock is right", "twice", setBack, { ...product, exchange: clampKept }),
  mutant("no end is clamped", "locked", setBack, { ...product, exchange: neverClamps }),
  mutant("the end is clamped again with each ask", "locked", setBack, { ...product, exchange: clampMoves }),
  mutant("permits are held by a clock that is behind", "S2", waitersLeave, withPool(TrustsClock())),
  mutant("a request is denied for good while others hold permits", "E1", "permits lie idle", withPool(DeniesTooSoon())),
  mutant("permits that no request needs are kept", "E1", "permits lie idle", withPool(NeverTidies())),
  mutant("an overdue answer tells what others hold", "E1", overdueFills, withPool(TrustsOverlap())),
  mutant("an overdue grant is thrown away", "E1", overdueFills, withPool(DropsOverdue())),
  mutant("a declined return is taken for lost", "E1", "declined asks give permits back", withPool(LosesDeclined())),
  mutant("permits are spent after the limit was lowered", "C1", "the limit is lowered", withPool(KeepsOutdated())),
  mutant("an answer from before a lower limit counts", "C1", "the limit is lowered", withPool(TrustsOldAnswer())),
  mutant("a use from before a lower limit serves another", "C1", loweredRefused, withPool(ReusesOutdated())),
  mutant("a declined return from before a lower limit counts", "C1", loweredDeclined, withPool(RestoresOutdated())),
  mutant("outdated permits are dropped", "E1", loweredFills, withPool(DropsOutdated())),
  mutant("a use is reported before it is finished", "E1", "refused uses give permits back", withPool(ReportsEarly())),
  mutant("a cost spends one permit", "S1", "costs are mixed", withPool(SpendsOne())),
  mutant("a cost given back late counts in a later window", "S1", "costs are refused", withPool(GivesBackAnywhere())),
  mutant("a part of a refused cost stays charged", "E1", "refused costs give permits back", withPool(ReleasesOne())),
  mutant("the ledger grants a part of a cost", "whole", "costs are mixed", { ...product, exchange: grantsParts }),
  mutant("a cost is split between replicas", "whole", "asks of costs are merged", { ...product, share: sharesEvenly }),
  mutant("what completes no cost is kept while requests wait", "E1", halves, withPool(Hoards())),
  mutant("a denied cost denies all smaller ones", "E1", largeUnderLoad, withPool(DeniesSmaller())),
];

/** A ledger that counts permits, not costs. */
function grantsParts(...[before, ask, ...rest]: Parameters<typeof exchangePermits>) {
  const wanted = ask.waiting.reduce((sum, { cost, count }) => sum + cost * count, 0);
  return exchangePermits(before, { ...ask, waiting: [{ cost: 1, count: wanted }] }, ...rest);
}

function sharesEvenly(...[asks, granted]: Parameters<Parts["share"]>): ReturnType<Parts["share"]> {
  return asks.map((_, i) => ({ granted: Math.floor((granted + i) / asks.length), lacking: undefined }));
}

function SpendsOne(): typeof PermitPool {
  return class extends PermitPool {
    protected override use(count: number): void {
      super.use(count);
      this.held += Math.max(0, count - 1);
    }
  };
}

function ReleasesOne(): typeof PermitPool {
  return class extends PermitPool {
    override release(gen: number, nowMs: number): PermitVerdict {
      return super.release(gen, nowMs, 1);
    }
  };
}

function Hoards(): typeof PermitPool {
  return class extends PermitPool {
    protected override surplus(needed: number, fetching: boolean, nowMs: number): number {
      return this.waiting.length > 0 ? 0 : super.surplus(needed, fetching, nowMs);
    }
  };
}

function DeniesSmaller(): typeof PermitPool {
  return class extends PermitPool {
    protected override rememberDenial(_above: number, untilMs: number, nowMs: number): void {
      super.rememberDenial(0, untilMs, nowMs);
    }
    protected override noteReach(): void {}
  };
}

function mutant(name: string, breaks: Mutant["breaks"], scope: string, parts: Parts): Mutant {
  return { name, breaks, scope, parts };
}

function creditAnyWindow(...[before, ask, ...rest]: Parameters<typeof exchangePermits>) {
  return exchangePermits(before, { ...ask, gen: before.gen }, ...rest);
}

function clampByRule(...[before, ask, rule, nowMs]: Parameters<typeof exchangePermits>) {
  return exchangePermits({ ...before, durationMs: before.gen && rule.durationMs }, ask, rule, nowMs);
}

function clampOverwrites(...asked: Parameters<typeof exchangePermits>) {
  const { window, grant } = exchangePermits(...asked);
  const { clampedEndsAtMs } = window;
  return { window: clampedEndsAtMs ? { ...window, endsAtMs: clampedEndsAtMs, clampedEndsAtMs: 0 } : window, grant };
}

function clampKept(...[before, ask, rule, nowMs]: Parameters<typeof exchangePermits>) {
  const endsAtMs = before.clampedEndsAtMs || before.endsAtMs;
  const { window, grant } = exchangePermits({ ...before, endsAtMs }, ask, rule, nowMs);
  return { window: { ...window, endsAtMs: window.gen === before.gen ? before.endsAtMs : window.endsAtMs }, grant };
}

function neverClamps(...[before, ask, rule, nowMs]: Parameters<typeof exchangePermits>) {
  const { window, grant } = exchangePermits({ ...before, durationMs: Number.MAX_SAFE_INTEGER }, ask, rule, nowMs);
  return { window, grant };
}

function clampMoves(...[before, ...rest]: Parameters<typeof exchangePermits>) {
  return exchangePermits({ ...before, clampedEndsAtMs: 0 }, ...rest);
}

function TrustsClock(): typeof PermitPool {
  return class extends PermitPool {
    override answered(message: PermitMessage, grant: PermitGrant, nowMs: number): PermitVerdict {
      return super.answered(message, { ...grant, clockBehind: false }, nowMs);
    }
  };
}

function withPool(Pool: typeof PermitPool): Parts {
  return { ...product, Pool };
}

function ZeroAfterSend(): typeof PermitPool {
  return class extends PermitPool {
    override nextAsk(nowMs: number): PermitMessage | undefined {
      const message = super.nextAsk(nowMs);
      this.held += message?.ask.returned ?? 0;
      return message;
    }
    override answered(message: PermitMessage, grant: PermitGrant, nowMs: number): PermitVerdict {
      this.held = Math.max(0, this.held - message.ask.returned);
      return super.answered(message, grant, nowMs);
    }
  };
}

function CreditsLost(): typeof PermitPool {
  return class extends PermitPool {
    override lost(message: PermitMessage, nowMs: number): void {
      if (message.ask.gen === this.gen) this.held += message.ask.returned;
      super.lost(message, nowMs);
    }
  };
}

function CountsCopies(): typeof PermitPool {
  return class extends PermitPool {
    protected override isUnderWay(): boolean {
      return true;
    }
  };
}

function CountsRefusalTwice(): typeof PermitPool {
  return class extends PermitPool {
    override notExecuted(message: PermitMessage, nowMs: number): PermitVerdict {
      this.overdueNumber = message.number;
      return super.notExecuted(message, nowMs);
    }
  };
}

function CreditsAnyWindow(): typeof PermitPool {
  return class extends PermitPool {
    override notExecuted(message: PermitMessage, nowMs: number): PermitVerdict {
      return super.notExecuted({ ...message, ask: { ...message.ask, gen: this.gen } }, nowMs);
    }
  };
}

function TakesBackOverdue(): typeof PermitPool {
  return class extends PermitPool {
    override overdue(message: PermitMessage): void {
      if (message.ask.gen === this.gen) this.held += message.ask.returned;
      super.overdue(message);
    }
  };
}

function RepeatsOverdue(): typeof PermitPool {
  return class extends PermitPool {
    protected overdueReturn = 0;
    override overdue(message: PermitMessage): void {
      this.overdueReturn = message.ask.returned;
      super.overdue(message);
    }
    override nextAsk(nowMs: number): PermitMessage | undefined {
      const message = super.nextAsk(nowMs);
      const { overdueReturn } = this;
      if (message === undefined || overdueReturn === 0) return message;
      this.overdueReturn = 0;
      return { ...message, ask: { ...message.ask, returned: message.ask.returned + overdueReturn } };
    }
  };
}

function CreditsLaterWindow(): typeof PermitPool {
  return class extends PermitPool {
    override answered(message: PermitMessage, grant: PermitGrant, nowMs: number): PermitVerdict {
      const isOlder = message.number !== this.lastMessageNumber && grant.gen < this.gen;
      return super.answered(
        message,
        isOlder ? { ...grant, gen: this.gen, endsInMs: 1000, durationMs: 1000 } : grant,
        nowMs,
      );
    }
  };
}

function TrustsOverlap(): typeof PermitPool {
  return class extends PermitPool {
    protected override heldElsewhere(_message: PermitMessage, { outstanding }: PermitGrant): number {
      return outstanding - this.held - this.inUse - this.spent;
    }
  };
}

function DropsOverdue(): typeof PermitPool {
  return class extends PermitPool {
    override overdue(message: PermitMessage): void {
      if (message.number === this.currentNumber) this.currentNumber = 0;
    }
  };
}

function LosesDeclined(): typeof PermitPool {
  return class extends PermitPool {
    override notExecuted(message: PermitMessage, nowMs: number): PermitVerdict {
      this.lost(message, nowMs);
      return this.verdict([]);
    }
  };
}

function GivesBackAnywhere(): typeof PermitPool {
  return class extends PermitPool {
    override release(_gen: number, nowMs: number, cost: number): PermitVerdict {
      if (this.isOpen(nowMs)) this.held += cost;
      return this.verdict(this.admitWaiting());
    }
  };
}

function EndsFromReceipt(): typeof PermitPool {
  return class extends PermitPool {
    protected override expiry(_message: PermitMessage, grant: PermitGrant, nowMs: number): number {
      return nowMs + grant.endsInMs * 0.999;
    }
  };
}

function KeepsForEver(): typeof PermitPool {
  return class extends PermitPool {
    protected override isOpen(): boolean {
      return this.gen > 0;
    }
  };
}

function AcceptsLate(): typeof PermitPool {
  return class extends PermitPool {
    protected override expiry(message: PermitMessage, grant: PermitGrant, nowMs: number): number {
      return Math.max(super.expiry(message, grant, nowMs), nowMs + 1);
    }
  };
}

function DeniesTooSoon(): typeof PermitPool {
  return class extends PermitPool {
    protected override heldElsewhere(): number {
      return 0;
    }
  };
}

function NeverTidies(): typeof PermitPool {
  return class extends PermitPool {
    protected override nextReturnMs(): number {
      return Number.POSITIVE_INFINITY;
    }
  };
}

function ReportsEarly(): typeof PermitPool {
  return class extends PermitPool {
    override nextAsk(nowMs: number): PermitMessage | undefined {
      this.commit(this.gen, this.inUse);
      return super.nextAsk(nowMs);
    }
  };
}

function KeepsOutdated(): typeof PermitPool {
  return class extends PermitPool {
    protected override outdateAll(): void {}
  };
}

function TrustsOldAnswer(): typeof PermitPool {
  return class extends PermitPool {
    protected override addGranted(_message: PermitMessage, granted: number): void {
      this.held += granted;
    }
  };
}

function ReusesOutdated(): typeof PermitPool {
  return class extends PermitPool {
    protected override outdateAll(): void {
      super.outdateAll();
      this.outdatedInUse = 0;
    }
  };
}

function RestoresOutdated(): typeof PermitPool {
  return class extends PermitPool {
    protected override restore({ ask }: PermitMessage): void {
      this.held += ask.returned;
      this.spent += ask.spent;
    }
  };
}

function DropsOutdated(): typeof PermitPool {
  return class extends PermitPool {
    protected override outdateAll(): void {
      this.held = 0;
    }
  };
}
