// One of several threads that take from the same rows as fast as they can, by a clock that only the test moves.
import { workerData } from "node:worker_threads";
import type { RateLimit } from "../../src/domain/rate-limit.ts";
import { unguarded } from "../../src/domain/row-guard.ts";
import { WindowRows } from "../../src/domain/window-rows.ts";
import { SharedRowGuard } from "../../src/ratelimit/local/shared-row-guard.ts";
import { WindowCounter } from "../../src/ratelimit/local/window-counter.ts";

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
const clock = { nowMs: () => 0, monotonicMs: () => Atomics.load(flags, 0) };
const counter = new WindowCounter({ rows: new WindowRows(rows), guard: isGuarded ? sharedGuard : unguarded }, clock);
const issuer = { keep() {}, giveBack: () => counter.untouched(rule) };
const claim = sharedGuard.claimOf(0);

// The threads move the clock themselves: whoever finds a window full opens the way to the next.
for (;;) {
  const nowMs = clock.monotonicMs();
  const window = Math.floor(nowMs / rule.durationMs);
  if (window >= windows) break;
  const permit = counter.take(issuer, "k", rule, 0, isGuarded ? claim : 0);
  if (permit?.outcome !== "admitted") Atomics.compareExchange(flags, 0, nowMs, (window + 1) * rule.durationMs);
  // Its end says which window it was charged to.
  else Atomics.add(counts, permit.mineEndsMs / rule.durationMs - 1, 1);
}
