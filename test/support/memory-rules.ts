import type { StoredSecret } from "../../src/domain/key.ts";
import { latestBoundaryMs } from "../../src/domain/refill-calendar.ts";
import {
  newCounter,
  type RefillRule,
  refilled,
  remainingMax,
  type UsageCounter,
  withBalance,
} from "../../src/domain/usage.ts";
import type { RerollKey, UpdateRemaining } from "../../src/store/commands.ts";
import type { ConflictReason } from "../../src/store/management.ts";

/* Rules of the store in memory. Broken stores replace them. */

export interface KeptSecret extends StoredSecret {
  readonly digest: string;
}

/** The secrets of a key after it was rerolled: the new one, and the one before if there is an overlap. */
export function rerolledSecrets(
  [newest]: readonly KeptSecret[],
  { secretDigest: digest, start, overlapMs, event: { atMs } }: RerollKey,
): KeptSecret[] {
  const made = { digest, start, createdAtMs: atMs, expiresAtMs: undefined };
  return newest === undefined || overlapMs === 0 ? [made] : [made, { ...newest, expiresAtMs: atMs + overlapMs }];
}

/** The counter with every refill that is due, and with another rule if one is given. */
export function withRefill(counter: UsageCounter, rule: RefillRule | null | undefined, nowMs: number): UsageCounter {
  if (rule === undefined) return counter;
  const { refill: before, ...due } = refilled(counter, nowMs);
  if (rule === null) return { ...due, refill: undefined };
  const begun = latestBoundaryMs(rule.interval, nowMs);
  return { ...due, refill: { ...rule, refilledThroughMs: Math.max(begun, before?.refilledThroughMs ?? begun) } };
}

/** The counter after the command, or why it is refused. */
export function updatedCounter(
  counter: UsageCounter | undefined,
  { op, value }: Pick<UpdateRemaining, "op" | "value">,
  nowMs: number,
): UsageCounter | undefined | ConflictReason {
  const due = counter && refilled(counter, nowMs);
  if (value === undefined) return undefined;
  if (op === "set") return due === undefined ? newCounter(value, undefined, nowMs) : withBalance(due, value);
  if (due === undefined) return "noCounter";
  const remaining = op === "increment" ? due.remaining + value : due.remaining - value;
  if (remaining < 0) return "belowZero";
  return remaining > remainingMax ? "aboveMax" : withBalance(due, remaining);
}
