import type { Ambient } from "../../ambient/ambient.ts";
import type { Metrics } from "../../ambient/metrics.ts";
import type { RateLimit, RateLimitState } from "../../domain/rate-limit.ts";
import { noWindowFor } from "../../domain/window-places.ts";
import type { WindowTable } from "../../domain/window-table.ts";
import type { InspectingLimiter } from "../limiter.ts";
import type { LocalPermit } from "./local-permit.ts";
import { WindowCounter, type WindowListener } from "./window-counter.ts";

/** Counts in this replica's memory: nothing is waited for. */
export class LocalLimiter extends WindowCounter implements InspectingLimiter {
  readonly #table: WindowTable;
  readonly #metrics: Metrics;

  constructor(table: WindowTable, ambient: Pick<Ambient, "clock" | "metrics">, listener?: WindowListener) {
    super(table, ambient.clock, listener);
    this.#table = table;
    this.#metrics = ambient.metrics;
  }

  take(subject: string, rule: RateLimit, cost = 1, apiId?: string): LocalPermit {
    const slot = this.#table.slotOf(subject, apiId);
    if (slot === undefined) {
      this.#metrics.windowsFull();
      throw noWindowFor(apiId);
    }
    // Rows are given to other subjects by this thread only, and not between two lines.
    return this.takeIn(slot, this.#table.claimOf(slot), subject, rule, cost) as LocalPermit;
  }

  override peek(subject: string, rule: RateLimit): RateLimitState {
    const slot = this.#table.find(subject);
    const state = slot === undefined ? undefined : this.peekIn(slot, this.#table.claimOf(slot), rule);
    return state ?? this.untouched(rule);
  }
}
