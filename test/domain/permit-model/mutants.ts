import type { PermitPool } from "../../../src/domain/permit-pool.ts";
import {
  clampByRule,
  clampKept,
  clampMoves,
  clampOverwrites,
  creditAnyWindow,
  grantsParts,
  neverClamps,
  sharesEvenly,
} from "./mutant-ledgers.ts";
import {
  AcceptsLate,
  CountsCopies,
  CountsRefusalTwice,
  CreditsAnyWindow,
  CreditsLaterWindow,
  CreditsLost,
  DeniesSmaller,
  DeniesTooSoon,
  DropsOutdated,
  DropsOverdue,
  EndsFromReceipt,
  GivesBackAnywhere,
  Hoards,
  KeepsForEver,
  KeepsOutdated,
  LosesDeclined,
  NeverTidies,
  ReleasesOne,
  RepeatsOverdue,
  ReportsEarly,
  RestoresOutdated,
  ReusesOutdated,
  SpendsOne,
  TakesBackOverdue,
  TrustsClock,
  TrustsOldAnswer,
  TrustsOverlap,
  ZeroAfterSend,
} from "./mutant-pools.ts";
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

function mutant(name: string, breaks: Mutant["breaks"], scope: string, parts: Parts): Mutant {
  return { name, breaks, scope, parts };
}

function withPool(Pool: typeof PermitPool): Parts {
  return { ...product, Pool };
}
