import { nextAsk, nextDueMs } from "../../../src/domain/permit-asking.ts";
import { onLimitChanged, PermitPool, recallPermits } from "../../../src/domain/permit-pool.ts";
import { markOverdue, settleGrant, settleLost, settleNotExecuted } from "../../../src/domain/permit-settling.ts";
import { commitPermits, releasePermits, takePermits } from "../../../src/domain/permit-spending.ts";

/** The product's functions, by which the model changes its pools. A mutant has others in the place of some of them. */
export const poolFunctions = {
  createPermitPool: () => new PermitPool(),
  takePermits,
  commitPermits,
  releasePermits,
  nextDueMs,
  nextAsk,
  markOverdue,
  settleGrant,
  settleLost,
  settleNotExecuted,
  recallPermits,
  onLimitChanged,
};

export type PermitPoolFunctions = typeof poolFunctions;
