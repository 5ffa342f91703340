import type { Key } from "./key.ts";
import { checkKey, type PlannedRequest } from "./key-checks.ts";
import type { Owner } from "./owner.ts";
import {
  type CounterCheck,
  codeOfRefusal,
  type Holder,
  type LimitCheck,
  type RefusalReason,
  type VerificationCheck,
} from "./refusal-reason.ts";
import { type LimitHolders, planVerification, type Verdict } from "./verification.ts";

/** What a verification would be answered, and what each of its checks finds. */
export interface Explanation {
  readonly code: Verdict["code"];
  /** In the order in which they decide, also those after the first that refuses. None for a key that is not there. */
  readonly checks: readonly VerificationCheck[];
  /** That of the first check that refuses. */
  readonly reason: RefusalReason | undefined;
}

/** The limits and counters of a key and its owner as they are, and what the verification would take of each. */
export interface Inspected {
  /** In the order in which they are named when several refuse, as counters are. */
  readonly limits: readonly InspectedLimit[];
  readonly counters: readonly InspectedCounter[];
}

/** What is stored of a key and its owner: nothing if there is no such key. */
export interface StoredHolders extends Partial<LimitHolders> {
  readonly counters: { readonly [Of in Holder]?: StoredCounter | undefined };
}

/** A counter with the refills that are due. */
export type StoredCounter = Pick<CounterCheck, "remaining" | "nextRefillMs">;

export type InspectedLimit = Omit<LimitCheck, "check" | "refusal">;
export type InspectedCounter = Omit<CounterCheck, "check" | "refusal">;

/**
 * Explains a verification of the key by the plan that a verification has. Limits and counters decide as when they are taken
 * from: the whole cost or nothing, and a cost of 0 passes. Throws `CostTooHigh`.
 */
export function explainVerification(
  key: Key | undefined,
  owner: Owner | undefined,
  request: PlannedRequest,
  { limits, counters }: Inspected,
  nowMs: number,
): Explanation {
  const plan = planVerification(key, owner, request, nowMs);
  const isNotFound = plan.next === "answer" && plan.verdict.code === "NOT_FOUND";
  if (key === undefined || isNotFound) return { code: "NOT_FOUND", checks: [], reason: undefined };
  const checks = [...checkKey(key, owner, request, nowMs), ...limits.map(checkLimit), ...counters.map(checkCounter)];
  const reason = checks.find(({ refusal }) => refusal !== undefined)?.refusal;
  return { code: reason === undefined ? "VALID" : codeOfRefusal(reason), checks, reason };
}

function checkLimit(limit: InspectedLimit): LimitCheck {
  const { of, name, state, cost } = limit;
  return { check: "limit", ...limit, refusal: cost > state.remaining ? { check: "limit", of, name } : undefined };
}

function checkCounter(counter: InspectedCounter): CounterCheck {
  const { of, remaining, cost, nextRefillMs } = counter;
  const refusal = cost > remaining ? ({ check: "counter", of, nextRefillMs } as const) : undefined;
  return { check: "counter", ...counter, refusal };
}
