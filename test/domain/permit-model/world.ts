import type { PermitPool } from "../../../src/domain/permit-pool.ts";
import type { PermitMessage, PermitVerdict } from "../../../src/domain/permit-verdict.ts";
import { neverOpened, type PermitGrant, type PermitWindow } from "../../../src/domain/permit-window.ts";
import type { Counts, Parts, Scope } from "./scope.ts";

export const stepMs = 100;
/** Not 0, which the pool takes for "never". */
export const startMs = 1000;
/** What the ledger's clock shows at 0: high enough to be set back and stay above 0. */
const ledgerEpochMs = 1_000_000;

/** Shown, pinned by the model, or compared through the flights. */
const irrelevant = new Set([
  "shownEndMs",
  "limit",
  "shownMin",
  "ratePerMs",
  "rateAtMs",
  "rttMs",
  "lastMessageNumber",
  "currentNumber",
  "overdueNumber",
  "overlapNumber",
]);

/** The numbers of a pool's messages. Only which of them a flight is counts, not the numbers themselves. */
type Numbers = Record<"lastMessageNumber" | "currentNumber" | "overdueNumber" | "overlapNumber", number>;

/** A message between a replica and the ledger. It stays until it is dropped: delivery may be late, or repeated. */
interface Flight {
  readonly replica: number;
  readonly message: PermitMessage;
  /** The ledger's answer, once it has one. */
  readonly grant: PermitGrant | undefined;
  /** When the window ends by that answer, in true time. */
  readonly endsAtMs: number;
  /** Its sender has crashed: the answer does not arrive. */
  readonly orphan: boolean;
  /** The coordinator has found it too old: it never reaches the ledger, and its answer says so. */
  readonly declined: boolean;
}

interface Replica {
  pool: PermitPool;
  /** The windows of the permits that are in use. */
  uses: number[];
  /** Whether it expects demand. The estimate only sizes blocks, so the model knows two values of it. */
  busy: boolean;
}

/** One state of two or three replicas, the ledger and the messages between them. Each method is a single step. */
export class World {
  /** True time, which the replicas' own clocks go by. */
  nowMs = startMs;
  /** By how much the ledger's clock is ahead of it. */
  clockAheadMs = 0;
  /** Since when the ledger's clock is seen to be behind for the open window, if it was not set since. */
  seenBehindMs: number | undefined;
  /** The rule in force. */
  durationMs: number;
  window: PermitWindow = neverOpened;
  replicas: Replica[] = [];
  flights: Flight[] = [];
  /** Admissions of each window, less those whose use was refused. */
  admitted: number[] = [];
  /** When each window ends in true time, if it lasts for its duration; and by what clock it was opened. */
  endsAtMs: number[] = [];
  openedAheadMs: number[] = [];
  counts: Counts;
  broken: string | undefined;
  readonly scope: Scope;
  readonly parts: Parts;

  constructor(scope: Scope, parts: Parts) {
    this.scope = scope;
    this.parts = parts;
    this.counts = scope.counts;
    this.durationMs = scope.durationMs;
    for (let i = 0; i < scope.replicas; i++) this.replicas.push({ pool: new parts.Pool(), uses: [], busy: true });
  }

  copy(): World {
    const copy = Object.assign(Object.create(World.prototype) as World, this);
    copy.replicas = this.replicas.map(({ pool, uses, busy }) => ({ pool: copied(pool), uses: [...uses], busy }));
    copy.flights = [...this.flights];
    copy.admitted = [...this.admitted];
    copy.endsAtMs = [...this.endsAtMs];
    copy.openedAheadMs = [...this.openedAheadMs];
    return copy;
  }

  /** Equal for states that go on in the same way: replicas are alike, so the order of them does not count. */
  key(): string {
    const replicas = this.replicas.map((_, at) => this.replicaKey(at)).sort();
    const window = Object.values(this.window).join(" ");
    const clock = `${this.nowMs} ${this.clockAheadMs} ${this.seenBehindMs} ${this.durationMs}`;
    const opened = `${this.endsAtMs} ${this.openedAheadMs}`;
    const counts = Object.values(this.counts).join("");
    return `${clock} ${opened} ${window}|${counts}|${this.admitted}|${replicas}`;
  }

  private replicaKey(at: number): string {
    const { pool, uses, busy } = this.at(at);
    const { currentNumber, overdueNumber } = numbersOf(pool);
    let key = `${busy ? "b" : "c"}${currentNumber !== 0}${overdueNumber !== 0}`;
    for (const name of Object.keys(pool)) {
      if (!irrelevant.has(name)) key += ` ${this.timeless(name, (pool as unknown as Record<string, unknown>)[name])}`;
    }
    if (uses.length > 0) key += `u${uses.toSorted()}`;
    const flights = this.flights.filter(({ replica }) => replica === at);
    return flights.length === 0 ? key : key + flights.map((flight) => this.flightKey(flight, pool)).sort();
  }

  private flightKey({ message, grant, endsAtMs, orphan, declined }: Flight, pool: PermitPool): string {
    const { wantMin, wantMax, gen, returned, spent } = message.ask;
    const { number } = message;
    const { lastMessageNumber, currentNumber, overdueNumber, overlapNumber } = numbersOf(pool);
    const place = [number === lastMessageNumber, number === currentNumber, number === overdueNumber];
    const state = `${place} ${number <= overlapNumber} ${declined}`;
    const answer = grant && `${grant.gen} ${grant.granted} ${grant.left} ${grant.outstanding} ${grant.endsInMs}`;
    const sent = `${this.nowMs - message.sentAtMs} ${wantMin} ${wantMax} ${gen} ${returned} ${spent}`;
    return `{${state} ${orphan} ${sent}>${answer} ${endsAtMs} ${grant?.contended} ${grant?.clockBehind}}`;
  }

  /** Times are compared only with the present, except for one: how long ago they were makes no difference. */
  private timeless(name: string, value: unknown): unknown {
    if (!name.endsWith("Ms") || name === "shortSinceMs") return value;
    return Number(value) <= this.nowMs ? "-" : value;
  }

  spend(count: keyof Counts): void {
    this.counts = { ...this.counts, [count]: this.counts[count] - 1 };
  }

  take(at: number): void {
    const replica = this.at(at);
    replica.busy = true;
    const take = this.pool(at).take(this.nowMs);
    if (take.outcome === "admitted") this.admit(replica, take.gen, 0);
  }

  hasToSend(at: number): boolean {
    return this.pool(at).nextDueMs(this.nowMs) === this.nowMs;
  }

  hasWaiting(at: number): boolean {
    return (this.at(at).pool as unknown as { waiting: number }).waiting > 0;
  }

  /** Sends the pool's next message. Returns false if there is none. */
  send(at: number): boolean {
    const message = this.pool(at).nextAsk(this.nowMs);
    if (message === undefined) return false;
    const flight = { replica: at, message, grant: undefined, endsAtMs: 0, orphan: false, declined: false };
    this.flights.push(flight);
    return true;
  }

  /** The ask reaches the ledger, for the first time or again. */
  reach(index: number): void {
    const flight = this.flights[index] as Flight;
    if (flight.declined || (flight.grant !== undefined && !this.parts.repeats)) return;
    const rule = { limit: this.scope.limit, durationMs: this.durationMs };
    const ledgerNowMs = ledgerEpochMs + this.nowMs + this.clockAheadMs;
    const { window, grant } = this.parts.exchange(this.window, flight.message.ask, rule, ledgerNowMs);
    if (window.gen !== this.window.gen) this.opened(window.gen);
    else if (flight.message.ask.wantMin > 0) this.stillOpen(window);
    this.window = window;
    if (flight.orphan) this.flights.splice(index, 1);
    else this.flights[index] = { ...flight, grant, endsAtMs: this.nowMs + grant.endsInMs };
  }

  /** Sets the ledger's clock: to a wrong time, or right again. */
  setClock(): void {
    this.clockAheadMs = this.clockAheadMs === 0 ? this.scope.setByMs : 0;
    this.seenBehindMs = undefined;
  }

  /** The key gets a shorter duration, for windows to come. */
  shorten(): void {
    this.durationMs /= 2;
  }

  private opened(gen: number): void {
    const earlyMs = (this.endsAtMs[gen - 1] ?? 0) - this.nowMs;
    if (earlyMs > 0 && this.clockAheadMs <= (this.openedAheadMs[gen - 1] as number)) {
      this.broken ??= `twice: window ${gen} opened ${earlyMs} ms before the end of the one before`;
    }
    this.endsAtMs[gen] = this.nowMs + this.durationMs;
    this.openedAheadMs[gen] = this.clockAheadMs;
    this.seenBehindMs = undefined;
  }

  /** A request waits and no window was opened for it: so the last window still counts. */
  private stillOpen({ gen }: PermitWindow): void {
    if (this.clockAheadMs >= (this.openedAheadMs[gen] as number)) return;
    this.seenBehindMs ??= this.nowMs;
    const lockedMs = this.nowMs - this.seenBehindMs;
    if (lockedMs >= this.scope.durationMs) this.broken ??= `locked: window ${gen} still open after ${lockedMs} ms`;
  }

  /** The coordinator finds the ask too old. */
  decline(index: number): void {
    if (this.parts.executesDeclined) this.reach(index);
    this.flights[index] = { ...(this.flights[index] as Flight), declined: true };
  }

  isAwaited(index: number): boolean {
    const { replica, message } = this.flights[index] as Flight;
    return message.number === numbersOf(this.at(replica).pool).currentNumber;
  }

  /** The replica does not wait for the answer any longer. The message goes on existing, and so does its answer. */
  delay(index: number): void {
    const { replica, message } = this.flights[index] as Flight;
    this.pool(replica).overdue(message);
  }

  /** The answer reaches the pool. The message goes on existing when a copy of it may come too. */
  arrive(index: number, copyFollows: boolean): void {
    const flight = this.flights[index] as Flight;
    if (!copyFollows) this.flights.splice(index, 1);
    if (flight.declined) {
      this.settle(flight.replica, this.pool(flight.replica).notExecuted(flight.message, this.nowMs), 0);
      return;
    }
    if (flight.grant === undefined) return;
    const verdict = this.pool(flight.replica).answered(flight.message, flight.grant, this.nowMs);
    this.settle(flight.replica, verdict, flight.endsAtMs);
    const { deniedUntilMs } = this.at(flight.replica).pool as unknown as { deniedUntilMs: number };
    if (deniedUntilMs > this.nowMs + this.scope.durationMs) this.broken ??= "locked: a denial outlives the duration";
  }

  /** The replica gives the message up. The ledger may see it all the same, and answer it. */
  lose(index: number): void {
    const flight = this.flights[index] as Flight;
    this.pool(flight.replica).lost(flight.message, this.nowMs);
    if (this.parts.resends) this.flights.push({ ...flight, grant: undefined, orphan: true });
  }

  charge(at: number, gen: number): void {
    this.at(at).uses.splice(this.at(at).uses.indexOf(gen), 1);
    this.pool(at).commit(gen);
  }

  refuse(at: number, gen: number): void {
    this.at(at).uses.splice(this.at(at).uses.indexOf(gen), 1);
    this.admitted[gen] = (this.admitted[gen] ?? 0) - 1;
    this.settle(at, this.pool(at).release(gen, this.nowMs), 0);
  }

  /** Only messages on their way to the ledger survive. Admitted requests stay admitted. */
  crash(at: number): void {
    this.replicas[at] = { pool: new this.parts.Pool(), uses: [], busy: true };
    this.flights = this.flights
      .filter(({ replica, grant }) => replica !== at || grant === undefined)
      .map((flight) => (flight.replica === at ? { ...flight, orphan: true } : flight));
  }

  reclaim(): void {
    this.window = { ...this.window, granted: this.window.spent };
  }

  at(index: number): Replica {
    return this.replicas[index] as Replica;
  }

  /** The pool, with the model's estimates in place of its own. */
  pool(index: number): PermitPool {
    const { pool, busy } = this.at(index);
    return Object.assign(pool, { ratePerMs: busy ? 0.02 : 0, rateAtMs: this.nowMs, rttMs: 10 });
  }

  private settle(at: number, verdict: PermitVerdict, endsAtMs: number): void {
    for (let i = 0; i < verdict.admitted; i++) this.admit(this.at(at), verdict.gen, endsAtMs);
  }

  /** Permits of an answer may be spent until the end that this answer tells; held ones, until the window's own end. */
  private admit(replica: Replica, gen: number, endsAtMs: number): void {
    // When it cannot be refused any more, it may as well be charged at once.
    if (this.counts.refusals > 0) replica.uses.push(gen);
    else replica.pool.commit(gen);
    const admitted = (this.admitted[gen] ?? 0) + 1;
    this.admitted[gen] = admitted;
    if (admitted > this.scope.limit) this.broken ??= `S1: ${admitted} admitted in window ${gen}`;
    if (this.nowMs >= Math.max(endsAtMs, this.endsAtMs[gen] ?? 0))
      this.broken ??= `S2: admitted after the end of window ${gen}`;
  }
}

function numbersOf(pool: PermitPool): Numbers {
  return pool as unknown as Numbers;
}

function copied(pool: PermitPool): PermitPool {
  return Object.assign(new (pool.constructor as typeof PermitPool)(), pool);
}
