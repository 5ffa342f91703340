import type { Key } from "../../src/domain/key.ts";
import type { Owner } from "../../src/domain/owner.ts";
import type { Spend } from "../../src/domain/verification.ts";
import type { Permit, RateLimiter } from "../../src/ratelimit/limiter.ts";
import type { KeyLookup, OwnersOfKeys } from "../../src/store/key-lookup.ts";
import type { UsageLedger } from "../../src/store/usage-ledger.ts";

/** The answers of each part, in order; an Error is thrown. A call without an answer fails the test. */
export interface Script {
  readonly found: readonly (Key | undefined | Error)[];
  /** Whether keys were imported. Default: none were. */
  readonly hasImportedKeys?: boolean;
  /** The owners that records are asked for. Default: a key has none. */
  readonly owners?: readonly (Owner | undefined | Error)[];
  readonly permits?: readonly (Permit["outcome"] | Error)[];
  readonly spends?: readonly (Spend | Error)[];
  /** The result of peeking or releasing, if it is not the key's state. */
  readonly limiterFails?: Error;
}

/** Where the key stands by each answer of the limiter: all different, so that a test sees which one is shown. */
export const standing = {
  peeked: { limit: 10, remaining: 9, resetMs: 1_900_000_000_001 },
  taken: { limit: 10, remaining: 7, resetMs: 1_900_000_000_002 },
  released: { limit: 10, remaining: 8, resetMs: 1_900_000_000_003 },
};

/** How the parts answer: a value, or the promise of one. */
export type Answering = <Value>(answer: () => Value) => Value | Promise<Value>;

/** The parts that a verification uses, with scripted answers. `did` lists the calls, in order. */
export function fakeParts(script: Script, answering: Answering) {
  const did: string[] = [];
  const found = inTurn("keys", script.found);
  const ownersFound = inTurn("owners", script.owners);
  const permits = inTurn("permits", script.permits);
  const spends = inTurn("spends", script.spends);

  const keys: KeyLookup = {
    hasImportedKeys: script.hasImportedKeys ?? false,
    findByDigest(digest, options) {
      const how = `${options?.fresh ? "fresh " : ""}${options?.foreign ? "foreign " : ""}`;
      did.push(`find ${how}${digest}`);
      return answering(found);
    },
  };
  const owners: OwnersOfKeys = {
    ownerOf({ ownerId }, options) {
      if (script.owners === undefined) return undefined;
      did.push(`find owner ${options?.fresh ? "fresh " : ""}${ownerId}`);
      return answering(ownersFound);
    },
  };
  const stand = (where: keyof typeof standing) =>
    answering(() => {
      if (script.limiterFails) throw script.limiterFails;
      return standing[where];
    });
  const limiter: RateLimiter = {
    take(subject, { limit }, cost = 1, apiId) {
      did.push(`take of ${limit} for ${subject} of ${apiId}${at(cost)}`);
      return answering(() => ({
        ...standing.taken,
        outcome: permits(),
        commit: () => void did.push(subject.includes("/") ? `commit ${subject}` : "commit"),
        release() {
          did.push(subject.includes("/") ? `release ${subject}` : "release");
          return stand("released");
        },
      }));
    },
    peek(keyId, { limit }) {
      did.push(`peek at ${limit} for ${keyId}`);
      return stand("peeked");
    },
  };
  const usage: UsageLedger = {
    async spend(counters, cost) {
      did.push(`spend for ${counters}${at(cost)}`);
      return spends();
    },
  };
  return { keys, owners, limiter, usage, did };
}

/** Where the cost is not 1. */
function at(cost: number): string {
  return cost === 1 ? "" : ` at ${cost}`;
}

/** Answers one after the other. */
export function inTurn<Answer>(name: string, answers: readonly (Answer | Error)[] = []): () => Answer {
  const left = [...answers];
  return () => {
    if (left.length === 0) throw new Error(`the script has no more ${name}`);
    const answer = left.shift() as Answer | Error;
    if (answer instanceof Error) throw answer;
    return answer;
  };
}
