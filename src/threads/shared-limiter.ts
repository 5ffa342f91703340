import type { Ambient } from "../ambient/ambient.ts";
import type { Metrics } from "../ambient/metrics.ts";
import type { MaybePromise } from "../domain/maybe-promise.ts";
import type { RateLimit, RateLimitState } from "../domain/rate-limit.ts";
import type { RowGuard } from "../domain/row-guard.ts";
import { Unavailable } from "../domain/unavailable.ts";
import type { WindowRows } from "../domain/window-rows.ts";
import type { Permit, RateLimiter } from "../ratelimit/limiter.ts";
import { WindowCounter, type WindowListener } from "../ratelimit/local/window-counter.ts";
import type { Row } from "./methods.ts";

interface SharedLimiterDeps extends Pick<Ambient, "clock" | "metrics"> {
  readonly rows: WindowRows;
  readonly guard: RowGuard | undefined;
  readonly askForRow: (keyId: string) => Promise<Row | undefined>;
  readonly peekOnMainThread: RateLimiter["peek"];
  readonly listener: WindowListener | undefined;
}

/** A key's new row can be given to another key before it is used. That is rare, and rarer with each repetition. */
const triesMax = 5;

/**
 * Counts in rows that all threads share. The main thread knows which row belongs to a key. This thread asks once and
 * caches the row; until the row is given to another key, every decision is made here, synchronously.
 */
export class SharedLimiter extends WindowCounter implements RateLimiter {
  readonly #guard: RowGuard | undefined;
  readonly #askForRow: (keyId: string) => Promise<Row | undefined>;
  readonly #peekOnMainThread: RateLimiter["peek"];
  readonly #metrics: Metrics;
  readonly #rows = new Map<string, Row>();
  readonly #asked = new Map<string, Promise<Row | undefined>>();
  #sweep = this.#rows.entries();

  constructor(deps: SharedLimiterDeps) {
    super(deps, deps.clock, deps.listener);
    this.#guard = deps.guard;
    this.#askForRow = deps.askForRow;
    this.#peekOnMainThread = deps.peekOnMainThread;
    this.#metrics = deps.metrics;
  }

  take(keyId: string, rule: RateLimit): MaybePromise<Permit> {
    const row = this.#rows.get(keyId);
    return (row && this.takeIn(row.slot, row.claim, keyId, rule)) ?? this.#takeInNewRow(keyId, rule);
  }

  override peek(keyId: string, rule: RateLimit): MaybePromise<RateLimitState> {
    const row = this.#rows.get(keyId);
    const state = row && this.peekIn(row.slot, row.claim, rule);
    return state ?? this.#peekOnMainThread(keyId, rule);
  }

  /** Checks so many cached rows and drops those that belong to another key now. */
  sweep(rowsToCheck: number): void {
    for (let i = 0; i < rowsToCheck; i++) {
      const next = this.#sweep.next();
      if (next.done) {
        this.#sweep = this.#rows.entries();
        return;
      }
      const [keyId, { slot, claim }] = next.value;
      if (this.#guard?.claimOf(slot) !== claim) this.#rows.delete(keyId);
    }
  }

  /** Cached rows. */
  get size(): number {
    return this.#rows.size;
  }

  async #takeInNewRow(keyId: string, rule: RateLimit): Promise<Permit> {
    for (let tries = 0; tries < triesMax; tries++) {
      const row = await this.#newRow(keyId);
      if (row === undefined) {
        this.#metrics.windowsFull();
        throw new Unavailable("every rate-limit window is taken");
      }
      const permit = this.takeIn(row.slot, row.claim, keyId, rule);
      if (permit !== undefined) return permit;
    }
    throw new Unavailable("the rate-limit window was given away each time");
  }

  /** Concurrent misses of the same key share one question. */
  #newRow(keyId: string): Promise<Row | undefined> {
    const asked = this.#asked.get(keyId) ?? this.#ask(keyId);
    this.#asked.set(keyId, asked);
    return asked;
  }

  async #ask(keyId: string): Promise<Row | undefined> {
    try {
      const row = await this.#askForRow(keyId);
      if (row !== undefined) this.#rows.set(keyId, row);
      return row;
    } finally {
      this.#asked.delete(keyId);
    }
  }
}
