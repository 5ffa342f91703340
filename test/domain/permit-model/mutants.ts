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
import * as pools from "./mutant-pools.ts";
import { type PermitPoolFunctions, poolFunctions } from "./pool-functions.ts";
import { type Parts, product } from "./scope.ts";
import type { Narrowing } from "./scopes.ts";

export interface Mutant {
  readonly name: string;
  /** The promise that it breaks, and the scope in which that is found. */
  readonly breaks: "S1" | "S2" | "E1" | "C1" | "twice" | "locked" | "whole";
  readonly scope: string;
  readonly parts: Parts;
  /** What the scope can be narrowed to with the mutant still being found. Undefined: it is too large for `npm test`. */
  readonly smallest: Narrowing | undefined;
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
  mutant(
    "the ledger takes a block back after a while",
    "S1",
    "messages get lost",
    { ...product, reclaims: true },
    { replicas: 1, steps: 0, takes: 2, losses: 0, leaves: 0 },
  ),
  mutant("a repeated ask is applied twice", "S1", "messages come twice", { ...product, repeats: true }),
  mutant("a return counts for the next window", "S1", "windows end", { ...product, exchange: creditAnyWindow }),
  mutant("returned permits are zeroed after the send", "S1", "messages get lost", withPool(pools.zeroAfterSend), {
    replicas: 1,
    messages: 3,
    losses: 0,
  }),
  mutant("a lost return is sent again", "S1", "messages get lost", { ...product, resends: true }),
  mutant("a lost return is taken for not sent", "S1", "messages get lost", withPool(pools.creditsLost)),
  mutant("a second copy of an answer counts", "S1", "messages come twice", withPool(pools.countsCopies), {
    replicas: 1,
    steps: 0,
    takes: 2,
    leaves: 0,
  }),
  mutant(
    "a permit given back late counts in a later window",
    "S1",
    "uses are refused",
    withPool(pools.givesBackAnywhere),
    {
      replicas: 1,
      messages: 2,
    },
  ),
  mutant(
    "a declined ask is executed all the same",
    "S1",
    "asks are declined",
    { ...product, executesDeclined: true },
    { copies: 0 },
  ),
  mutant("a second copy of a refusal counts", "S1", "asks are declined", withPool(pools.countsRefusalTwice), {
    replicas: 1,
    messages: 2,
  }),
  mutant("a declined return counts in a later window", "S1", declinedLate, withPool(pools.creditsAnyWindow)),
  mutant("an overdue return is taken back", "S1", "answers are overdue", withPool(pools.takesBackOverdue), {
    replicas: 1,
    messages: 3,
  }),
  mutant("an overdue return is sent again", "S1", "answers are overdue", withPool(pools.repeatsOverdue), {
    replicas: 1,
  }),
  mutant("an overdue grant counts in a later window", "S1", overdueLate, withPool(pools.creditsLaterWindow), {
    replicas: 1,
    steps: 1,
    takes: 2,
    messages: 2,
  }),
  mutant("the end is counted from the answer's arrival", "S2", "answers are late", withPool(pools.endsFromReceipt), {
    steps: 2,
    takes: 1,
    messages: 1,
    losses: 0,
  }),
  mutant("permits are kept past the end", "S2", "uses are refused", withPool(pools.keepsForEver), {
    replicas: 1,
    steps: 1,
    takes: 2,
    messages: 1,
  }),
  mutant("a grant that arrives late is used at once", "S2", "answers are late", withPool(pools.acceptsLate), {
    steps: 2,
    takes: 1,
    messages: 1,
    losses: 0,
  }),
  mutant(
    "the end is clamped by the rule of now",
    "twice",
    shortened,
    { ...product, exchange: clampByRule },
    { replicas: 1, steps: 1, settings: 1 },
  ),
  mutant(
    "the clamped end overwrites the true one",
    "twice",
    setBack,
    { ...product, exchange: clampOverwrites },
    { replicas: 1, steps: 1, takes: 2 },
  ),
  mutant(
    "the clamped end counts when the clock is right",
    "twice",
    setBack,
    { ...product, exchange: clampKept },
    { replicas: 1, steps: 1, takes: 2 },
  ),
  mutant(
    "no end is clamped",
    "locked",
    setBack,
    { ...product, exchange: neverClamps },
    { replicas: 1, steps: 0, takes: 2, settings: 1 },
  ),
  mutant(
    "the end is clamped again with each ask",
    "locked",
    setBack,
    { ...product, exchange: clampMoves },
    { takes: 2, settings: 1 },
  ),
  mutant("permits are held by a clock that is behind", "S2", waitersLeave, withPool(pools.trustsClock), {
    replicas: 1,
    takes: 2,
  }),
  mutant(
    "a request is denied for good while others hold permits",
    "E1",
    "permits lie idle",
    withPool(pools.deniesTooSoon),
    { steps: 0, messages: 2, lulls: 0 },
  ),
  mutant("permits that no request needs are kept", "E1", "permits lie idle", withPool(pools.neverTidies), {
    steps: 0,
    messages: 2,
    lulls: 0,
  }),
  mutant("an overdue answer tells what others hold", "E1", overdueFills, withPool(pools.trustsOverlap), {
    replicas: 1,
    limit: 1,
    takes: 2,
  }),
  mutant("an overdue grant is thrown away", "E1", overdueFills, withPool(pools.dropsOverdue), {
    takes: 1,
    recalls: 0,
    leaves: 0,
  }),
  mutant(
    "a declined return is taken for lost",
    "E1",
    "declined asks give permits back",
    withPool(pools.losesDeclined),
    {
      replicas: 1,
      takes: 1,
    },
  ),
  mutant("permits are spent after the limit was lowered", "C1", "the limit is lowered", withPool(pools.keepsOutdated), {
    replicas: 1,
    limit: 1,
    takes: 2,
    messages: 1,
  }),
  mutant("an answer from before a lower limit counts", "C1", "the limit is lowered", withPool(pools.trustsOldAnswer), {
    replicas: 1,
    limit: 1,
    takes: 1,
    leaves: 0,
  }),
  mutant("a use from before a lower limit serves another", "C1", loweredRefused, withPool(pools.reusesOutdated), {
    replicas: 1,
    limit: 1,
    takes: 2,
    messages: 1,
  }),
  mutant(
    "a declined return from before a lower limit counts",
    "C1",
    loweredDeclined,
    withPool(pools.restoresOutdated),
    {
      replicas: 1,
      limit: 1,
      takes: 1,
      leaves: 0,
    },
  ),
  mutant("outdated permits are dropped", "E1", loweredFills, withPool(pools.dropsOutdated), {
    replicas: 1,
    takes: 1,
    messages: 2,
    leaves: 0,
  }),
  mutant(
    "a use is reported before it is finished",
    "E1",
    "refused uses give permits back",
    withPool(pools.reportsEarly),
    {
      replicas: 1,
      limit: 1,
      steps: 0,
      takes: 2,
    },
  ),
  mutant("a cost spends one permit", "S1", "costs are mixed", withPool(pools.spendsOne), {
    replicas: 1,
    limit: 2,
    steps: 0,
    takes: 2,
    leaves: 0,
  }),
  mutant(
    "a cost given back late counts in a later window",
    "S1",
    "costs are refused",
    withPool(pools.givesBackAnywhere),
    {
      replicas: 1,
      limit: 1,
    },
  ),
  mutant(
    "a part of a refused cost stays charged",
    "E1",
    "refused costs give permits back",
    withPool(pools.releasesOne),
    {
      limit: 2,
      takes: 1,
    },
  ),
  mutant(
    "the ledger grants a part of a cost",
    "whole",
    "costs are mixed",
    { ...product, exchange: grantsParts },
    { replicas: 1, limit: 1, steps: 0, takes: 1, leaves: 0 },
  ),
  mutant(
    "a cost is split between replicas",
    "whole",
    "asks of costs are merged",
    { ...product, share: sharesEvenly },
    { limit: 1, takes: 2, leaves: 0 },
  ),
  mutant("what completes no cost is kept while requests wait", "E1", halves, withPool(pools.hoards), {
    takes: 1,
    leaves: 0,
  }),
  mutant("a denied cost denies all smaller ones", "E1", largeUnderLoad, withPool(pools.deniesSmaller), {
    replicas: 1,
    takes: 2,
  }),
];

function mutant(
  name: string,
  breaks: Mutant["breaks"],
  scope: string,
  parts: Parts,
  smallest: Narrowing | undefined = undefined,
): Mutant {
  return { name, breaks, scope, parts, smallest };
}

function withPool(replaced: Partial<PermitPoolFunctions>): Parts {
  return { ...product, pool: { ...poolFunctions, ...replaced } };
}
