import type { Counts, Scope } from "./scope.ts";
import { stepMs } from "./world.ts";
import { startMs } from "./world-ledger.ts";

const nothing: Counts = {
  takes: 0,
  messages: 0,
  losses: 0,
  copies: 0,
  crashes: 0,
  recalls: 0,
  refusals: 0,
  leaves: 0,
  lulls: 0,
  settings: 0,
  shortenings: 0,
  delays: 0,
  declines: 0,
  lowerings: 0,
  merges: 0,
};

/** Far more than any window lasts: each of its windows shows it. */
const longMs = 100 * stepMs;

const clockSet = { limit: 1, steps: 2, takes: 3, messages: 3 };
const long = { durationMs: 3000, steps: 0, fills: true };
const short = { limit: 1, durationMs: stepMs, steps: 2 };
const lowered = { limit: 2, steps: 0, takes: 3, messages: 3, lowerings: 1 };
const costly = { costs: [1, 2], steps: 1 };
const behind = { limit: 2, steps: 2, takes: 3, messages: 2 };

/** Each scope lets something else go wrong, so that none grows too large. */
export const scopes: ReadonlyMap<string, Scope> = new Map([
  ["messages get lost", scope({ limit: 1, steps: 1, takes: 3, messages: 4, leaves: 1, losses: 1 })],
  ["messages come twice", scope({ limit: 1, steps: 1, takes: 3, messages: 4, leaves: 1, copies: 1 })],
  ["windows end", scope({ limit: 1, steps: 2, takes: 3, messages: 4, leaves: 1 })],
  ["answers are late", scope({ limit: 2, takes: 3, messages: 2, losses: 1 })],
  ["blocks are fetched and recalled", scope({ limit: 3, steps: 1, takes: 4, messages: 3, recalls: 1 })],
  ["replicas crash and start again", scope({ limit: 2, steps: 2, takes: 3, messages: 3, crashes: 1 })],
  ["uses are refused", scope({ limit: 1, durationMs: stepMs, steps: 2, takes: 3, messages: 3, refusals: 1 })],
  ["there are three replicas", scope({ replicas: 3, limit: 1, steps: 1, takes: 3, messages: 3, leaves: 1, losses: 1 })],
  ["answers are overdue", scope({ limit: 1, steps: 1, takes: 3, messages: 4, leaves: 1, delays: 1 })],
  ["overdue answers outlive their window", scope({ ...short, takes: 3, messages: 3, delays: 1 })],
  ["overdue answers are lost", scope({ limit: 2, steps: 1, takes: 2, messages: 3, leaves: 1, delays: 1, losses: 1 })],
  ["asks are declined", scope({ limit: 1, steps: 1, takes: 3, messages: 3, leaves: 1, declines: 1, copies: 1 })],
  [
    "overdue asks are declined after their window",
    scope({ ...short, replicas: 1, takes: 3, messages: 3, leaves: 1, recalls: 1, declines: 1, delays: 1 }),
  ],
  ["the limit is lowered", scope({ ...lowered, leaves: 1 })],
  ["the limit is lowered while uses are refused", scope({ ...lowered, refusals: 1 })],
  ["the limit is lowered while answers are overdue", scope({ ...lowered, delays: 1 })],
  ["the limit is lowered while asks are declined", scope({ ...lowered, declines: 1, leaves: 1 })],
  ["the ledger's clock is set back, and right again", scope({ ...clockSet, setByMs: -longMs, settings: 2 })],
  [
    "the ledger's clock is set forward, and right again",
    scope({ ...clockSet, takes: 2, setByMs: longMs, settings: 2 }),
  ],
  ["waiters leave while the clock is behind", scope({ ...behind, setByMs: -longMs, settings: 1, leaves: 1 })],
  [
    "the duration changes while the clock is set",
    scope({ ...clockSet, takes: 2, setByMs: -longMs, settings: 2, shortenings: 1 }),
  ],
  ["costs are mixed", scope({ ...costly, limit: 3, takes: 3, messages: 3, leaves: 1 })],
  ["messages with costs get lost", scope({ ...costly, limit: 3, takes: 3, messages: 2, losses: 1 })],
  [
    "costs are refused",
    scope({ ...costly, limit: 2, durationMs: stepMs, steps: 2, takes: 3, messages: 2, refusals: 1 }),
  ],
  ["asks of costs are merged", scope({ ...costly, limit: 3, steps: 0, takes: 3, messages: 3, leaves: 1, merges: 2 })],
  ["the limit is lowered below a cost", scope({ ...lowered, ...costly, steps: 0, messages: 2, leaves: 1 })],
  ["costs wait while the clock is behind", scope({ ...behind, ...costly, setByMs: -longMs, settings: 1, leaves: 1 })],
  // For E1, from every state: no message is lost and no replica crashes, at the beginning of a long window.
  ["permits lie idle", scope({ limit: 3, durationMs: 3000, steps: 1, fills: true, takes: 3, messages: 3, lulls: 1 })],
  [
    "an overdue answer comes after another",
    scope({ ...long, limit: 2, takes: 3, messages: 3, leaves: 1, recalls: 1, delays: 1 }),
  ],
  [
    "declined asks give permits back",
    scope({ ...long, limit: 2, takes: 3, messages: 3, leaves: 1, recalls: 1, declines: 1 }),
  ],
  [
    "permits come back when the limit is lowered",
    scope({ ...long, limit: 3, takes: 3, messages: 3, leaves: 1, lowerings: 1 }),
  ],
  [
    "refused uses give permits back",
    scope({ limit: 2, durationMs: 3000, steps: 1, fills: true, takes: 3, messages: 2, refusals: 1 }),
  ],
  ["two replicas hold a half each", scope({ ...long, limit: 4, costs: [1, 2], takes: 3, messages: 3, leaves: 1 })],
  ["a large cost waits among small ones", scope({ ...long, limit: 4, costs: [1, 3], takes: 4, messages: 3 })],
  ["refused costs give permits back", scope({ ...long, limit: 3, costs: [1, 2], takes: 3, messages: 3, refusals: 1 })],
]);

/** Fewer of some things. */
export type Narrowing = Partial<Counts> & {
  readonly replicas?: number;
  readonly limit?: number;
  readonly steps?: number;
};

export function narrow(scope: Scope, { replicas, limit, steps, ...counts }: Narrowing): Scope {
  return {
    ...scope,
    ...(replicas !== undefined && { replicas }),
    ...(limit !== undefined && { limit }),
    ...(steps !== undefined && { endMs: startMs + steps * stepMs }),
    counts: { ...scope.counts, ...counts },
  };
}

function scope(options: Partial<Counts> & Partial<Scope> & { readonly limit: number; readonly steps?: number }): Scope {
  const { replicas = 2, limit, durationMs = 2 * stepMs, steps = 3, setByMs = 0, fills = false, ...others } = options;
  const { costs = [1], ...counts } = others;
  const endMs = startMs + steps * stepMs;
  return { replicas, limit, durationMs, setByMs, costs, fills, endMs, counts: { ...nothing, ...counts } };
}
