import type { ConflictReason } from "../management.ts";
import { hasCounterCheck, ownerHasCounterCheck, remainingMaxCheck, remainingMinCheck } from "./schema.ts";
import type { CheckViolation } from "./sql-engine.ts";

/** Why a constraint has refused a change; undefined if no command leads to it. */
export function conflictOf({ constraint }: CheckViolation): ConflictReason | undefined {
  return reasons.get(constraint);
}

const reasons = new Map<string, ConflictReason>([
  [hasCounterCheck, "noCounter"],
  [ownerHasCounterCheck, "noCounter"],
  [remainingMinCheck, "belowZero"],
  [remainingMaxCheck, "aboveMax"],
]);
