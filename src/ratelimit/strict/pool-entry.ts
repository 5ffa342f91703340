import type { Deadline } from "../../domain/deadlines.ts";
import type { PermitPool } from "../../domain/permit-pool.ts";
import type { Shortage } from "../../domain/permit-verdict.ts";
import type { PermitRule } from "../../domain/permit-window.ts";
import type { RateLimit } from "../../domain/rate-limit.ts";
import type { Unavailable } from "../../domain/unavailable.ts";
import type { Permit } from "../limiter.ts";
import type { Pooled } from "./pool-table.ts";

/** A pool, and who waits for its permits. */
export interface Entry extends Pooled {
  /** What its asks bring: the rule of a free-standing limit. */
  readonly brought: PermitRule | undefined;
  readonly pool: PermitPool;
  /** In the order in which they came: those that wait in the pool. */
  waiting: Waiting[];
  /** When the pool wants to send something. */
  dueMs: number | undefined;
  /** When an answer last left requests waiting because the ledger had too few permits left. */
  short: (Shortage & { readonly atMs: number }) | undefined;
}

export interface Waiting {
  readonly rule: RateLimit;
  readonly cost: number;
  readonly sinceMs: number;
  readonly deadline: Deadline;
  readonly resolve: (permit: Permit) => void;
  readonly reject: (error: Unavailable) => void;
}
