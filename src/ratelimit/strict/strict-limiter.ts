import type { Ambient } from "../../ambient/ambient.ts";
import { countOf, dropFirst, dropLast, type Picked } from "../../domain/cost-queue.ts";
import { Deadline } from "../../domain/deadlines.ts";
import { nextAsk, nextDueMs } from "../../domain/permit-asking.ts";
import {
  displayState,
  dropPermits,
  isDisplayed,
  onLimitChanged,
  type PermitMessage,
  type PermitVerdict,
  permitsHeld,
  recallPermits,
  remainingWindowMs,
} from "../../domain/permit-pool.ts";
import { markOverdue, noteLeft, settleGrant, settleLost, settleNotExecuted } from "../../domain/permit-settling.ts";
import { commitPermits, releasePermits, takePermits } from "../../domain/permit-spending.ts";
import type { RateLimit, RateLimitState } from "../../domain/rate-limit.ts";
import { Unavailable } from "../../domain/unavailable.ts";
import type { WaitingRoom } from "../../domain/waiting-room.ts";
import { noWindowFor } from "../../domain/window-places.ts";
import type { InspectingLimiter, Permit } from "../limiter.ts";
import type { PermitAnswer, PermitChannel } from "../permit-channel.ts";
import { inspectWindow } from "./inspect-window.ts";
import { type Entry, type PoolBounds, PoolTable, removePicked, type Waiting } from "./pool-table.ts";
import { noSuchSubject, StrictPermit } from "./strict-permit.ts";

/** Its bounds: limits with an open window at most. A further one is `Unavailable`. */
export interface StrictLimiterOptions extends Pick<Ambient, "clock" | "metrics">, PoolBounds {
  readonly channel: PermitChannel;
  /** How long a verification waits for a permit. */
  readonly timeoutMs: () => number;
  readonly waitingRoom: WaitingRoom;
}

/** How often pools are checked that want to send something later, or that have waiting requests. */
const tickMs = 5;
/** Pools checked in each tick for whether they are still needed. */
const sweptPerTick = 500;
const stopMs = 300;

/**
 * Holds subjects to limits that are never exceeded: each verification spends permits that the ledger has charged before.
 * While a pool holds permits nothing is waited for; otherwise verifications queue for the next answer.
 */
export class StrictLimiter implements InspectingLimiter {
  readonly #options: StrictLimiterOptions;
  readonly #pools: PoolTable;
  /** The pools that each tick checks. */
  readonly #active = new Set<Entry>();
  readonly #tick: NodeJS.Timeout;
  readonly #waitingRoom: WaitingRoom;
  /** Messages without an answer. */
  readonly #underWay = new Set<Promise<void>>();
  #stopping = false;

  constructor(options: StrictLimiterOptions) {
    this.#options = options;
    this.#waitingRoom = options.waitingRoom;
    this.#pools = new PoolTable(options);
    this.#tick = setInterval(() => this.#onTick(), tickMs).unref();
  }

  take(subject: string, rule: RateLimit, cost = 1, apiId?: string): Permit | Promise<Permit> {
    const nowMs = this.#options.clock.monotonicMs();
    const known = this.#pools.find(subject, rule.limit);
    if (cost > rule.limit) return this.#permit(known, rule, cost, undefined, nowMs);
    const entry = known ?? this.#open(subject, rule, apiId);
    const taken = takePermits(entry.pool, nowMs, cost);
    if (taken.outcome === "wait") return this.#wait(entry, rule, cost, nowMs);
    // What was taken may have made a new block due.
    if (taken.outcome === "admitted") this.#pump(entry, nowMs);
    return this.#permit(entry, rule, cost, taken.outcome === "admitted" ? taken.gen : undefined, nowMs);
  }

  peek(subject: string, rule: RateLimit): RateLimitState {
    return this.stateOf(this.#pools.find(subject, rule.limit), rule, this.#options.clock.monotonicMs());
  }

  /** This replica's own permits are returned too, so that the ledger knows of all. */
  async inspect(subject: string, rule: RateLimit, cost: number): Promise<RateLimitState | undefined> {
    this.recall(subject);
    const window = await inspectWindow(subject, cost, this.#options);
    if (window === undefined) return undefined;
    for (const { pool } of this.#pools.ofSubject(subject)) noteLeft(pool, window);
    const { limit, left: remaining, endsInMs, endsAtMs, clockBehind } = window;
    if (endsInMs === 0) return { limit, remaining: limit, resetMs: this.#wallMs(rule.durationMs) };
    return { limit, remaining, resetMs: clockBehind ? this.#wallMs(endsInMs) : endsAtMs };
  }

  /** Another replica waits for the subject's permits. Returns those that no request waits for here. */
  recall(subject: string): void {
    for (const entry of this.#pools.ofSubject(subject)) this.#recall(entry);
  }

  /** A limit of this key or owner was changed, or it was deleted: what was concluded before is worth nothing. */
  holderChanged(holder: string): void {
    for (const entry of this.#pools.ofHolder(holder)) {
      onLimitChanged(entry.pool);
      entry.short = undefined;
      this.#recall(entry);
    }
  }

  /** Permits that this replica holds. */
  get held(): number {
    let held = 0;
    for (const { pool } of this.#pools.values()) held += permitsHeld(pool);
    return held;
  }

  /** Gives everything back, also what is still on its way here. Nothing may be taken any more. */
  async stop(): Promise<void> {
    clearInterval(this.#tick);
    this.#stopping = true;
    for (const entry of this.#pools.values()) this.#recall(entry);
    await Promise.race([this.#answered(), new Promise((resolve) => setTimeout(resolve, stopMs))]);
    this.#options.channel.close();
  }

  /** Resolves when nothing is under way. An answer can be followed by a message, which returns what was granted. */
  async #answered(): Promise<void> {
    while (this.#underWay.size > 0) await Promise.allSettled(this.#underWay);
  }

  /** Only for permits. */
  charged(entry: Entry, gen: number, cost: number): void {
    commitPermits(entry.pool, gen, cost);
    this.#watch(entry, this.#options.clock.monotonicMs());
  }

  /** Only for permits. */
  release(entry: Entry, gen: number, rule: RateLimit, cost: number): RateLimitState {
    const nowMs = this.#options.clock.monotonicMs();
    this.#apply(entry, releasePermits(entry.pool, gen, nowMs, cost), nowMs);
    this.#pump(entry, nowMs);
    return this.stateOf(entry, rule, nowMs);
  }

  /** As `displayState`. Before the first answer nothing is known: then as if no window were open. */
  stateOf(entry: Entry | undefined, { limit, durationMs }: RateLimit, nowMs: number, below = Infinity): RateLimitState {
    const state = entry && displayState(entry.pool, nowMs, limit, below);
    if (state === undefined) return { limit, remaining: Math.min(limit, below - 1), resetMs: this.#wallMs(durationMs) };
    return this.#byOurClock(entry as Entry, state, nowMs);
  }

  /** By a ledger's clock that is behind the end would lie in the past for callers: then this replica's is the better one. */
  #byOurClock({ pool }: Entry, state: RateLimitState, nowMs: number): RateLimitState {
    const endsInMs = remainingWindowMs(pool, nowMs);
    return endsInMs === undefined ? state : { ...state, resetMs: this.#wallMs(endsInMs) };
  }

  #wallMs(inMs: number): number {
    return Math.ceil(this.#options.clock.nowMs() + inMs);
  }

  #recall(entry: Entry): void {
    recallPermits(entry.pool);
    this.#pump(entry, this.#options.clock.monotonicMs());
  }

  #open(subject: string, rule: RateLimit, apiId: string | undefined): Entry {
    const entry = this.#pools.open(subject, rule, apiId);
    if (entry !== undefined) return entry;
    this.#options.metrics.windowsFull();
    throw noWindowFor(apiId);
  }

  #wait(entry: Entry, rule: RateLimit, cost: number, nowMs: number): Promise<Permit> {
    const refusal = this.#waitingRoom.enter(entry.waiting.length);
    if (refusal !== undefined) {
      dropLast(entry.pool.waiting);
      throw refusal;
    }
    const permit = new Promise<Permit>((resolve, reject) => {
      const deadline = new Deadline(this.#options.clock, this.#options.timeoutMs());
      entry.waiting.push({ rule, cost, resolve, reject, sinceMs: nowMs, deadline });
    });
    this.#pump(entry, nowMs);
    return permit;
  }

  /** Sends the pool's next message if it is due. */
  #pump(entry: Entry, nowMs: number): void {
    this.#watch(entry, nowMs);
    if (entry.dueMs === undefined || entry.dueMs > nowMs) return;
    const message = nextAsk(entry.pool, nowMs);
    if (message !== undefined) this.#send(entry, message);
    this.#watch(entry, nowMs);
  }

  #send(entry: Entry, message: PermitMessage): void {
    const onOverdue = () => {
      markOverdue(entry.pool, message);
      this.#pump(entry, this.#options.clock.monotonicMs());
    };
    const { subject, rule } = entry;
    const ask = rule === undefined ? message.ask : { ...message.ask, sentRule: rule };
    const exchange = this.#options.channel.exchange(subject, ask, { onOverdue });
    const answered = exchange.then(
      (answer) => this.#onAnswer(entry, message, answer),
      () => this.#onLost(entry, message),
    );
    this.#underWay.add(answered);
    void answered.finally(() => this.#underWay.delete(answered));
  }

  #watch(entry: Entry, nowMs: number): void {
    entry.dueMs = nextDueMs(entry.pool, nowMs);
    if (entry.dueMs !== undefined || entry.waiting.length > 0) this.#active.add(entry);
    else this.#active.delete(entry);
  }

  #onAnswer(entry: Entry, message: PermitMessage, answer: PermitAnswer): void {
    const nowMs = this.#options.clock.monotonicMs();
    switch (answer.outcome) {
      case "failed":
        this.#onLost(entry, message);
        return;
      case "missing":
        this.#drop(entry);
        return;
      case "notExecuted":
        this.#apply(entry, settleNotExecuted(entry.pool, message, nowMs), nowMs);
        this.#watch(entry, nowMs);
        return;
      case "settled":
        this.#apply(entry, settleGrant(entry.pool, message, answer, nowMs), nowMs);
        if (this.#stopping) recallPermits(entry.pool);
        this.#pump(entry, nowMs);
    }
  }

  #onLost(entry: Entry, message: PermitMessage): void {
    const nowMs = this.#options.clock.monotonicMs();
    settleLost(entry.pool, message, nowMs);
    this.#watch(entry, nowMs);
  }

  #apply(entry: Entry, { gen, admitted, denied, isFinal, short }: PermitVerdict, nowMs: number): void {
    if (denied.length > 0 && !isFinal) this.#options.metrics.deniedUnsettled(countOf(denied));
    for (const { rule, cost, resolve } of this.#leave(entry, admitted))
      resolve(this.#permit(entry, rule, cost, gen, nowMs));
    for (const { rule, cost, resolve } of this.#leave(entry, denied))
      resolve(this.#permit(entry, rule, cost, undefined, nowMs));
    if (short === undefined) return;
    entry.short = { ...short, atMs: nowMs, state: this.#byOurClock(entry, short.state, nowMs) };
    // The coordinator recalls from other replicas only: not what another pool here holds of the same window.
    if (entry.rule === undefined) return;
    for (const other of this.#pools.ofSubject(entry.subject)) if (other !== entry) this.#recall(other);
  }

  /** There is no such subject any more. */
  #drop(entry: Entry): void {
    dropPermits(entry.pool);
    // Another entry may have taken its place, if two messages were under way.
    this.#pools.delete(entry);
    this.#active.delete(entry);
    for (const { resolve } of this.#leaveFirst(entry, entry.waiting.length)) resolve(noSuchSubject);
  }

  #leave(entry: Entry, picked: readonly Picked[]): Waiting[] {
    const gone = removePicked(entry, picked);
    this.#waitingRoom.leave(gone.length);
    return gone;
  }

  #leaveFirst(entry: Entry, count: number): Waiting[] {
    this.#waitingRoom.leave(count);
    return entry.waiting.splice(0, count);
  }

  /** Without a window there is nothing to admit from, and no entry is needed. */
  #permit(entry: Entry | undefined, rule: RateLimit, cost: number, gen: number | undefined, nowMs: number): Permit {
    const state = this.stateOf(entry, rule, nowMs, gen === undefined ? cost : undefined);
    return new StrictPermit(this, entry as Entry, rule, cost, gen, state);
  }

  #onTick(): void {
    const nowMs = this.#options.clock.monotonicMs();
    for (const entry of this.#active) {
      this.#giveUp(entry, nowMs);
      if (entry.dueMs !== undefined && entry.dueMs <= nowMs) this.#pump(entry, nowMs);
    }
    this.#pools.sweep(sweptPerTick, nowMs);
  }

  /**
   * For requests that have waited long enough, in the order in which they came. One for which the ledger had too few
   * permits left while it waited is refused: others have held the last ones all the time. For one without any answer it
   * could not be decided.
   */
  #giveUp(entry: Entry, nowMs: number): void {
    let gone = 0;
    while (gone < entry.waiting.length && (entry.waiting[gone] as Waiting).deadline.hasPassed) gone++;
    if (gone === 0) return;
    dropFirst(entry.pool.waiting, gone);
    for (const { rule, cost, sinceMs, resolve, reject } of this.#leaveFirst(entry, gone)) {
      const { short } = entry;
      if (short !== undefined && short.atMs >= sinceMs && cost > short.above) {
        this.#options.metrics.deniedUnsettled(1);
        const isOpen = isDisplayed(entry.pool, short.gen, nowMs);
        const state = isOpen ? this.stateOf(entry, rule, nowMs, cost) : short.state;
        resolve(new StrictPermit(this, entry, rule, cost, undefined, state));
      } else reject(new Unavailable("no permit came in time"));
    }
    this.#watch(entry, nowMs);
  }
}
