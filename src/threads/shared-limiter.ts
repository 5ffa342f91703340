import type { Ambient } from "../ambient/ambient.ts";
import type { Metrics } from "../ambient/metrics.ts";
import type { MaybePromise } from "../domain/maybe-promise.ts";
import type { RateLimit, RateLimitState } from "../domain/rate-limit.ts";
import type { RowGuard } from "../domain/row-guard.ts";
import { Unavailable } from "../domain/unavailable.ts";
import { noWindowFor } from "../domain/window-places.ts";
import type { WindowRows } from "../domain/window-rows.ts";
import type { InspectingLimiter, Permit, RateLimiter } from "../ratelimit/limiter.ts";
import { WindowCounter, type WindowListener } from "../ratelimit/local/window-counter.ts";
import type { Row } from "./methods.ts";

interface SharedLimiterDeps extends Pick<Ambient, "clock" | "metrics"> {
  readonly rows: WindowRows;
  readonly guard: RowGuard | undefined;
  readonly askForRow: (subject: string, apiId: string | undefined) => Promise<Row | undefined>;
  readonly peekOnMainThread: RateLimiter["peek"];
  readonly listener: WindowListener | undefined;
}

/** A subject's new row can be given to another subject before it is used. That is rare, and rarer with each repetition. */
const triesMax = 5;

/**
 * Counts in rows that all threads share. The main thread knows which row belongs to a subject. This thread asks once and
 * caches the row; until the row is given to another subject, every decision is made here, synchronously.
 */
export class SharedLimiter extends WindowCounter implements InspectingLimiter {
  readonly #guard: RowGuard | undefined;
  readonly #askForRow: SharedLimiterDeps["askForRow"];
  readonly #peekOnMainThread: RateLimiter["peek"];
  readonly #metrics: Metrics;
  readonly #rows = new Map<string, Row>();
  readonly #asked = new Map<string, { readonly apiId: string | undefined; readonly row: Promise<Row | undefined> }>();
  #sweep = this.#rows.entries();

  constructor(deps: SharedLimiterDeps) {
    super(deps, deps.clock, deps.listener);
    this.#guard = deps.guard;
    this.#askForRow = deps.askForRow;
    this.#peekOnMainThread = deps.peekOnMainThread;
    this.#metrics = deps.metrics;
  }

  take(subject: string, rule: RateLimit, cost = 1, apiId?: string): MaybePromise<Permit> {
    const row = this.#rows.get(subject);
    const permit = row && this.takeIn(row.slot, row.claim, subject, rule, cost);
    return permit ?? this.#takeInNewRow(subject, rule, cost, apiId);
  }

  override peek(subject: string, rule: RateLimit): MaybePromise<RateLimitState> {
    const row = this.#rows.get(subject);
    const state = row && this.peekIn(row.slot, row.claim, rule);
    return state ?? this.#peekOnMainThread(subject, rule);
  }

  /** Checks so many cached rows and drops those that belong to another subject now. */
  sweep(rowsToCheck: number): void {
    for (let i = 0; i < rowsToCheck; i++) {
      const next = this.#sweep.next();
      if (next.done) {
        this.#sweep = this.#rows.entries();
        return;
      }
      const [subject, { slot, claim }] = next.value;
      if (this.#guard?.claimOf(slot) !== claim) this.#rows.delete(subject);
    }
  }

  /** Cached rows. */
  get size(): number {
    return this.#rows.size;
  }

  async #takeInNewRow(subject: string, rule: RateLimit, cost: number, apiId: string | undefined): Promise<Permit> {
    for (let tries = 0; tries < triesMax; tries++) {
      const row = await this.#newRow(subject, apiId);
      if (row === undefined) {
        this.#metrics.windowsFull();
        throw noWindowFor(apiId);
      }
      const permit = this.takeIn(row.slot, row.claim, subject, rule, cost);
      if (permit !== undefined) return permit;
    }
    throw new Unavailable("the rate-limit window was given away each time");
  }

  /** Concurrent misses of the same subject share one question, unless they ask for different APIs: one may get no row. */
  #newRow(subject: string, apiId: string | undefined): Promise<Row | undefined> {
    const asked = this.#asked.get(subject);
    if (asked !== undefined && asked.apiId === apiId) return asked.row;
    const row = this.#ask(subject, apiId);
    this.#asked.set(subject, { apiId, row });
    return row;
  }

  async #ask(subject: string, apiId: string | undefined): Promise<Row | undefined> {
    try {
      const row = await this.#askForRow(subject, apiId);
      if (row !== undefined) this.#rows.set(subject, row);
      return row;
    } finally {
      this.#asked.delete(subject);
    }
  }
}
