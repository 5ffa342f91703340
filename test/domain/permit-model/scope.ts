import { exchangePermits } from "../../../src/domain/permit-window.ts";
import { shareOut } from "../../../src/ratelimit/coordinator/merge-asks.ts";
import { type PermitPoolFunctions, poolFunctions } from "./pool-functions.ts";

/** What is explored, and how far. `counts` bounds how often each thing may happen on one path. */
export interface Scope {
  readonly replicas: number;
  readonly limit: number;
  readonly durationMs: number;
  readonly endMs: number;
  /** By how much the ledger's clock is off when it is set, and set right the next time. */
  readonly setByMs: number;
  /** What requests may cost. */
  readonly costs: readonly number[];
  /** Whether each state is also asked whether its window fills. */
  readonly fills: boolean;
  readonly counts: Counts;
}

export type Counts = Readonly<
  Record<
    | "takes"
    | "messages"
    | "losses"
    | "copies"
    | "crashes"
    | "recalls"
    | "refusals"
    | "leaves"
    | "lulls"
    | "settings"
    | "shortenings"
    | "delays"
    | "lowerings"
    | "declines"
    | "merges",
    number
  >
>;

/** The parts under test. A mutant differs from the product in one of them. */
export interface Parts {
  readonly pool: PermitPoolFunctions;
  readonly exchange: typeof exchangePermits;
  /** How the coordinator splits what was granted for several asks. */
  readonly share: typeof shareOut;
  /** What the ledger does with an ask that it has answered before: the writer's sequence gives the stored answer. */
  readonly repeats: boolean;
  /** Whether it takes blocks back after a while. */
  readonly reclaims: boolean;
  /** Whether a lost message goes out again on another way, whose sequence does not know it. */
  readonly resends: boolean;
  /** Whether an ask that the coordinator declines reaches the ledger all the same. */
  readonly executesDeclined: boolean;
}

export const product: Parts = {
  pool: poolFunctions,
  exchange: exchangePermits,
  share: shareOut,
  repeats: false,
  reclaims: false,
  resends: false,
  executesDeclined: false,
};
