import type { PermitAsk } from "../../../src/domain/permit-window.ts";
import type { PermitResult, SubjectAsk } from "../../../src/store/permit-ledger.ts";

export type Settled = Extract<PermitResult, { outcome: "settled" }>;

/** An ask with these fields. For the others no request waits, and all else is 0. */
export function askFor(ask: Partial<PermitAsk>): PermitAsk {
  return { waiting: [], inAdvance: 0, gen: 0, returned: 0, spent: 0, holders: 1, ...ask };
}

/** The answer of a ledger with an open window and many permits, except for these fields. */
export function settledWith(grant: Partial<Settled>): Settled {
  return {
    outcome: "settled",
    gen: 1,
    granted: 0,
    left: 1000,
    outstanding: 0,
    endsInMs: 60_000,
    endsAtMs: 1_800_000_000_000,
    durationMs: 60_000,
    clockBehind: false,
    contended: false,
    limit: 10_000,
    ...grant,
  };
}

/** Grants everything that is wanted, also in advance. */
export function grantAll(ask: SubjectAsk): PermitResult {
  const granted = wantedBy(ask) + ask.inAdvance;
  return settledWith({ granted, outstanding: granted });
}

/** The permits that requests wait for. */
export function wantedBy({ waiting }: Pick<PermitAsk, "waiting">): number {
  return waiting.reduce((sum, { cost, count }) => sum + cost * count, 0);
}
