import { countOf } from "../../src/domain/cost-queue.ts";
import { nextAsk } from "../../src/domain/permit-asking.ts";
import { type PermitMessage, PermitPool, type PermitVerdict } from "../../src/domain/permit-pool.ts";
import { settleGrant } from "../../src/domain/permit-settling.ts";
import { takePermits } from "../../src/domain/permit-spending.ts";
import type { PermitGrant } from "../../src/domain/permit-window.ts";

export const startMs = 10_000;
export const endsAtMs = 1_700_000_000_000;

/** A window of a minute, ten seconds of which are gone. */
export const plenty: PermitGrant = {
  gen: 7,
  granted: 5,
  left: 900,
  outstanding: 5,
  endsInMs: 50_000,
  endsAtMs,
  durationMs: 60_000,
  clockBehind: false,
  contended: false,
  limit: 1_000,
};
export const exhausted: PermitGrant = { ...plenty, granted: 0, left: 0, outstanding: 0, contended: true };
export const heldByOthers: PermitGrant = { ...exhausted, outstanding: 3 };

/** A pool whose first request, at `startMs`, was answered like this. */
export function poolWith(grant: PermitGrant, rttMs = 20): { pool: PermitPool; verdict: PermitVerdict } {
  const pool = new PermitPool();
  takePermits(pool, startMs);
  const verdict = settleGrant(pool, ask(pool, startMs), grant, startMs + rttMs);
  return { pool, verdict };
}

/** The verdict with how many requests are admitted and denied, in place of which. */
export function counted(verdict: PermitVerdict) {
  return { ...verdict, admitted: countOf(verdict.admitted), denied: countOf(verdict.denied) };
}

export function ask(pool: PermitPool, nowMs: number): PermitMessage {
  const message = nextAsk(pool, nowMs);
  if (message === undefined) throw new Error("the pool has nothing to ask for");
  return message;
}
