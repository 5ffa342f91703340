import type { Clock } from "../../ambient/clock.ts";
import type { Metrics } from "../../ambient/metrics.ts";
import type { RateLimit, RateLimitState } from "../../domain/rate-limit.ts";
import { Unavailable } from "../../domain/unavailable.ts";
import type { WindowTable } from "../../domain/window-table.ts";
import type { RateLimiter } from "../limiter.ts";
import type { LocalPermit, PermitIssuer } from "./local-permit.ts";
import { WindowCounter, type WindowListener } from "./window-counter.ts";

/** Counts in this replica's memory: nothing is waited for. */
export class LocalLimiter implements RateLimiter, PermitIssuer {
  readonly #table: WindowTable;
  readonly #counter: WindowCounter;
  readonly #metrics: Metrics;

  constructor(
    table: WindowTable,
    ambient: { readonly clock: Clock; readonly metrics: Metrics },
    listener?: WindowListener,
  ) {
    this.#table = table;
    this.#counter = new WindowCounter(table, ambient.clock, listener);
    this.#metrics = ambient.metrics;
  }

  take(keyId: string, rule: RateLimit): LocalPermit {
    const slot = this.#table.slotOf(keyId);
    if (slot === undefined) {
      this.#metrics.windowsFull();
      throw new Unavailable("every rate-limit window is taken");
    }
    // Rows are given to other keys by this thread only, and not between two lines.
    return this.#counter.take(this, keyId, rule, slot, this.#table.guard.claimOf(slot)) as LocalPermit;
  }

  look(keyId: string, rule: RateLimit): RateLimitState {
    const slot = this.#table.find(keyId);
    const state = slot === undefined ? undefined : this.#counter.look(rule, slot, this.#table.guard.claimOf(slot));
    return state ?? this.#counter.untouched(rule);
  }

  /** Looks whether the wall clock was set; from then on ends are told by the new time. */
  followWallClock(): void {
    this.#counter.followWallClock();
  }

  /** From monotonic to Unix time, by which ends are told. */
  get unixOffsetMs(): number {
    return this.#counter.unixOffsetMs;
  }

  keep(permit: LocalPermit): void {
    this.#counter.keep(permit);
  }

  giveBack(permit: LocalPermit): RateLimitState {
    this.#counter.giveBack(permit);
    return this.look(permit.keyId, permit.rule);
  }
}
