// One of several threads that take from the same rows as fast as they can, by a clock that only the test moves.
import { workerData } from "node:worker_threads";
import { createMetrics } from "../../src/ambient/metrics.ts";
import type { RateLimit } from "../../src/domain/rate-limit.ts";
import { WindowRows } from "../../src/domain/window-rows.ts";
import type { LocalPermit } from "../../src/ratelimit/local/local-permit.ts";
import { SharedRowGuard } from "../../src/ratelimit/local/shared-row-guard.ts";
import { SharedLimiter } from "../../src/threads/shared-limiter.ts";

export interface HammerSetup {
  readonly rows: SharedArrayBuffer;
  readonly guard: SharedArrayBuffer;
  /** The time. */
  readonly state: SharedArrayBuffer;
  /** How many passed, by window. */
  readonly admitted: SharedArrayBuffer;
  readonly rule: RateLimit;
  readonly windows: number;
  readonly isGuarded: boolean;
}

const { rows, guard, state, admitted, rule, windows, isGuarded } = workerData as HammerSetup;
const flags = new Int32Array(state);
const counts = new Int32Array(admitted);
const sharedGuard = new SharedRowGuard(guard);
const limiter = new SharedLimiter({
  rows: new WindowRows(rows),
  guard: isGuarded ? sharedGuard : undefined,
  askForRow: async () => ({ slot: 0, claim: sharedGuard.claimOf(0) }),
  peekOnMainThread: () => ({ limit: 0, remaining: 0, resetMs: 0 }),
  listener: undefined,
  clock: { nowMs: () => 0, monotonicMs: () => Atomics.load(flags, 0), lateMs: () => 0 },
  metrics: createMetrics(),
});
// The first asks for the row; from then on everything is decided at once.
await limiter.take("k", { ...rule, limit: 0 });

// The threads move the clock themselves: a thread that finds a window full moves it to the next window.
for (;;) {
  const nowMs = Atomics.load(flags, 0);
  const window = Math.floor(nowMs / rule.durationMs);
  if (window >= windows) break;
  const permit = limiter.take("k", rule) as LocalPermit;
  if (permit.outcome !== "admitted") Atomics.compareExchange(flags, 0, nowMs, (window + 1) * rule.durationMs);
  // Its end says which window it was charged to.
  else Atomics.add(counts, permit.mineEndsMs / rule.durationMs - 1, 1);
}
