import { exchangePermits } from "../../../src/domain/permit-window.ts";
import type { Parts } from "./scope.ts";

/* The ledger's and the coordinator's side with one thing wrong. */

/** A ledger that counts permits, not costs. */
export function grantsParts(...[before, ask, ...rest]: Parameters<typeof exchangePermits>) {
  const wanted = ask.waiting.reduce((sum, { cost, count }) => sum + cost * count, 0);
  return exchangePermits(before, { ...ask, waiting: [{ cost: 1, count: wanted }] }, ...rest);
}

export function sharesEvenly(...[asks, granted]: Parameters<Parts["share"]>): ReturnType<Parts["share"]> {
  return asks.map((_, i) => ({ granted: Math.floor((granted + i) / asks.length), lacking: undefined }));
}

export function creditAnyWindow(...[before, ask, ...rest]: Parameters<typeof exchangePermits>) {
  return exchangePermits(before, { ...ask, gen: before.gen }, ...rest);
}

export function clampByRule(...[before, ask, rule, nowMs]: Parameters<typeof exchangePermits>) {
  return exchangePermits({ ...before, durationMs: before.gen && rule.durationMs }, ask, rule, nowMs);
}

export function clampOverwrites(...asked: Parameters<typeof exchangePermits>) {
  const { window, grant } = exchangePermits(...asked);
  const { clampedEndsAtMs } = window;
  return { window: clampedEndsAtMs ? { ...window, endsAtMs: clampedEndsAtMs, clampedEndsAtMs: 0 } : window, grant };
}

export function clampKept(...[before, ask, rule, nowMs]: Parameters<typeof exchangePermits>) {
  const endsAtMs = before.clampedEndsAtMs || before.endsAtMs;
  const { window, grant } = exchangePermits({ ...before, endsAtMs }, ask, rule, nowMs);
  return { window: { ...window, endsAtMs: window.gen === before.gen ? before.endsAtMs : window.endsAtMs }, grant };
}

export function neverClamps(...[before, ask, rule, nowMs]: Parameters<typeof exchangePermits>) {
  const { window, grant } = exchangePermits({ ...before, durationMs: Number.MAX_SAFE_INTEGER }, ask, rule, nowMs);
  return { window, grant };
}

export function clampMoves(...[before, ...rest]: Parameters<typeof exchangePermits>) {
  return exchangePermits({ ...before, clampedEndsAtMs: 0 }, ...rest);
}
