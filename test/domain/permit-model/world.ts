import { grantRuns } from "../../../src/domain/cost-runs.ts";
import type { PermitPool, PermitTake, PermitVerdict } from "../../../src/domain/permit-pool.ts";
import type { PermitGrant } from "../../../src/domain/permit-window.ts";
import { mergeAsks } from "../../../src/ratelimit/coordinator/merge-asks.ts";
import type { PermitPoolFunctions } from "./pool-functions.ts";
import { type Flight, type Replica, replicaKey, type Use } from "./replica-key.ts";
import type { Counts, Parts, Scope } from "./scope.ts";
import { WorldLedger } from "./world-ledger.ts";

export const stepMs = 100;

/** One state of two or three replicas, the ledger and the messages between them. Each method is a single step. */
export class World extends WorldLedger {
  /** A number for each text that was part of a key: comparing a few numbers takes much less time than long texts. */
  readonly numbers = new Map<string, number>();
  /** Part of the key. Undefined: changed since the last key. */
  private countsKey: number | undefined;
  /** A bit for each replica that this world shares with no other. Only such a replica may be changed. */
  private ownReplicas = 0;
  replicas: Replica[] = [];
  flights: Flight[] = [];
  /** What was admitted in each window, less what was refused later: the sum of the costs. */
  admitted: number[] = [];
  counts: Counts;

  constructor(scope: Scope, parts: Parts) {
    super(scope, parts);
    this.counts = scope.counts;
    for (let i = 0; i < scope.replicas; i++) this.replicas.push(newReplica(parts, scope.limit));
  }

  /** What changes pools: the product's functions, or a mutant's. */
  get functions(): PermitPoolFunctions {
    return this.parts.pool;
  }

  /** Copies share their replicas until one of them changes: a step changes one of them at most. */
  copy(): World {
    this.ownReplicas = 0;
    const copy = Object.assign(Object.create(World.prototype) as World, this);
    copy.replicas = [...this.replicas];
    copy.flights = [...this.flights];
    copy.admitted = [...this.admitted];
    copy.endsAtMs = [...this.endsAtMs];
    copy.openedAheadMs = [...this.openedAheadMs];
    return copy;
  }

  /** Equal for states that go on in the same way: replicas are alike, so the order of them does not count. */
  key(): string {
    let replicas = "";
    const numbers = this.replicas.map((replica, at) => {
      replica.key ??= this.numberOf(replicaKey(replica, this.flightsOf(at), this.nowMs));
      return replica.key;
    });
    for (const number of numbers.sort(ascending)) replicas += ` ${number}`;
    this.windowKey ??= this.numberOf(`window ${Object.values(this.window).join(" ")}`);
    this.countsKey ??= this.numberOf(`counts ${Object.values(this.counts).join(" ")}`);
    this.pastKey ??= this.numberOf(`past ${this.endsAtMs} ${this.openedAheadMs}|${this.admitted}`);
    const clock = `${this.nowMs} ${this.clockAheadMs} ${this.seenBehindMs} ${this.durationMs} ${this.limit}`;
    return `${clock} ${this.windowKey} ${this.countsKey} ${this.pastKey}${replicas}`;
  }

  private numberOf(text: string): number {
    const known = this.numbers.get(text);
    if (known !== undefined) return known;
    this.numbers.set(text, this.numbers.size);
    return this.numbers.size - 1;
  }

  private flightsOf(at: number): Flight[] {
    return this.flights.filter(({ replica }) => replica === at);
  }

  pass(ms: number): void {
    this.nowMs += ms;
    for (let at = 0; at < this.replicas.length; at++) this.forgetKey(at);
  }

  spend(count: keyof Counts): void {
    this.counts = { ...this.counts, [count]: this.counts[count] - 1 };
    this.countsKey = undefined;
  }

  take(at: number, cost = 1): PermitTake["outcome"] {
    const replica = this.at(at);
    replica.busy = true;
    const take = this.functions.takePermits(this.pool(at), this.nowMs, cost);
    if (take.outcome === "admitted") this.admit(replica, { gen: take.gen, cost }, 0);
    return take.outcome;
  }

  hasToSend(at: number): boolean {
    return this.functions.nextDueMs(this.estimating(this.seen(at)), this.nowMs) === this.nowMs;
  }

  hasWaiting(at: number): boolean {
    return this.seen(at).pool.waiting.length > 0;
  }

  /** Sends the pool's next message. Returns false if there is none. */
  send(at: number): boolean {
    const message = this.functions.nextAsk(this.pool(at), this.nowMs);
    if (message === undefined) return false;
    const flight = { replica: at, message, grant: undefined, endsAtMs: 0, orphan: false, declined: false };
    this.flights.push(flight);
    return true;
  }

  /** The ask reaches the ledger, for the first time or again. */
  reach(index: number): void {
    const flight = this.flights[index] as Flight;
    if (flight.declined || (flight.grant !== undefined && !this.parts.repeats)) return;
    this.answer(index, this.exchange(flight.message.ask));
    if (flight.orphan) this.flights.splice(index, 1);
  }

  /** The coordinator makes one ask of several. */
  reachAsOne(indexes: readonly number[]): void {
    const asks = indexes.map((index) => (this.flights[index] as Flight).message.ask);
    const grant = this.exchange(mergeAsks(asks, asks.length));
    const shares = this.parts.share(asks, grant.granted);
    indexes.forEach((index, i) => {
      this.answer(index, { ...grant, granted: shares[i]?.granted ?? 0 });
    });
  }

  private answer(index: number, grant: PermitGrant): void {
    const flight = this.flights[index] as Flight;
    const { waiting } = flight.message.ask;
    const served = grantRuns(grant.granted, waiting);
    const rest = waiting.reduce((left, { cost }, i) => left - cost * (served[i] as number), grant.granted);
    const isEachServed = waiting.every(({ count }, i) => served[i] === count);
    if (rest > 0 && !isEachServed) this.broken ??= `whole: ${rest} granted that complete no cost`;
    this.forgetKey(flight.replica);
    this.flights[index] = { ...flight, grant, endsAtMs: this.nowMs + grant.endsInMs };
  }

  hear(at: number): void {
    if (this.seen(at).heardLimit === this.limit) return;
    this.at(at).heardLimit = this.limit;
    this.functions.onLimitChanged(this.pool(at));
    this.functions.recallPermits(this.pool(at));
  }

  recall(at: number): void {
    this.functions.recallPermits(this.at(at).pool);
  }

  /** The coordinator finds the ask too old. */
  decline(index: number): void {
    if (this.parts.executesDeclined) this.reach(index);
    const flight = this.flights[index] as Flight;
    this.flights[index] = { ...flight, declined: true };
    this.forgetKey(flight.replica);
  }

  isAwaited(index: number): boolean {
    const { replica, message } = this.flights[index] as Flight;
    return message.number === this.seen(replica).pool.currentNumber;
  }

  /** The replica does not wait for the answer any longer. The message goes on existing, and so does its answer. */
  delay(index: number): void {
    const { replica, message } = this.flights[index] as Flight;
    this.functions.markOverdue(this.pool(replica), message);
  }

  /** The answer reaches the pool. The message goes on existing when a copy of it may come too. */
  arrive(index: number, copyFollows: boolean): void {
    const { replica, message, grant, endsAtMs, declined } = this.flights[index] as Flight;
    if (!copyFollows) this.flights.splice(index, 1);
    if (declined) {
      this.settle(replica, this.functions.settleNotExecuted(this.pool(replica), message, this.nowMs), 0);
      return;
    }
    if (grant === undefined) return;
    this.settle(replica, this.functions.settleGrant(this.pool(replica), message, grant, this.nowMs), endsAtMs);
    const { deniedUntilMs } = this.at(replica).pool;
    if (deniedUntilMs > this.nowMs + this.scope.durationMs) this.broken ??= "locked: a denial outlives the duration";
  }

  /** The replica gives the message up. The ledger may see it all the same, and answer it. */
  lose(index: number): void {
    const flight = this.flights[index] as Flight;
    this.functions.settleLost(this.pool(flight.replica), flight.message, this.nowMs);
    if (this.parts.resends) this.flights.push({ ...flight, grant: undefined, orphan: true });
  }

  charge(at: number, use: Use): void {
    this.endUse(at, use);
    this.functions.commitPermits(this.pool(at), use.gen, use.cost);
  }

  refuse(at: number, use: Use): void {
    this.endUse(at, use);
    const { gen, cost } = use;
    this.admitted[gen] = (this.admitted[gen] ?? 0) - cost;
    this.pastKey = undefined;
    this.settle(at, this.functions.releasePermits(this.pool(at), gen, this.nowMs, cost), 0);
  }

  private endUse(at: number, { gen, cost }: Use): void {
    const { uses } = this.at(at);
    uses.splice(
      uses.findIndex((use) => use.gen === gen && use.cost === cost),
      1,
    );
  }

  /** Only messages on their way to the ledger survive. Admitted requests stay admitted. */
  crash(at: number): void {
    this.replicas[at] = newReplica(this.parts, this.limit);
    this.flights = this.flights
      .filter(({ replica, grant }) => replica !== at || grant === undefined)
      .map((flight) => (flight.replica === at ? { ...flight, orphan: true } : flight));
  }

  /** The replica, to be changed. */
  at(index: number): Replica {
    const replica = this.seen(index);
    const bit = 1 << index;
    if (this.ownReplicas & bit) {
      replica.key = undefined;
      return replica;
    }
    this.ownReplicas |= bit;
    const own = { ...replica, pool: copied(replica.pool), uses: [...replica.uses], key: undefined };
    this.replicas[index] = own;
    return own;
  }

  /** The replica, only to be looked at: another world may have the same. */
  seen(index: number): Replica {
    return this.replicas[index] as Replica;
  }

  /** The time or a flight has changed, which are part of the replica's key. */
  private forgetKey(index: number): void {
    const replica = this.seen(index);
    if (replica.key !== undefined) this.replicas[index] = { ...replica, key: undefined };
  }

  /** The pool, to be changed. */
  pool(index: number): PermitPool {
    return this.estimating(this.at(index));
  }

  /** The pool with the model's estimates in place of its own. They are set before each use, so others may share them. */
  private estimating({ pool, busy }: Replica): PermitPool {
    const perMs = busy ? 0.02 : 0;
    return Object.assign(pool, {
      ratePerMs: perMs,
      unitsPerMs: perMs,
      squaresPerMs: perMs,
      rateAtMs: this.nowMs,
      rttMs: 10,
    });
  }

  private settle(at: number, verdict: PermitVerdict, endsAtMs: number): void {
    for (const { count, cost } of verdict.admitted) {
      for (let i = 0; i < count; i++) this.admit(this.at(at), { gen: verdict.gen, cost }, endsAtMs);
    }
  }

  /** Permits of an answer may be spent until the end that this answer tells; held ones, until the window's own end. */
  private admit(replica: Replica, { gen, cost }: Use, endsAtMs: number): void {
    // When it cannot be refused any more, it may as well be charged at once.
    if (this.counts.refusals > 0) replica.uses.push({ gen, cost });
    else this.functions.commitPermits(replica.pool, gen, cost);
    const admitted = (this.admitted[gen] ?? 0) + cost;
    this.admitted[gen] = admitted;
    this.pastKey = undefined;
    // Permits that others were granted before are spent by those that have not heard of a lower limit.
    if (admitted > replica.heardLimit) {
      const promise = replica.heardLimit === this.scope.limit ? "S1" : "C1";
      this.broken ??= `${promise}: ${admitted} admitted in window ${gen}, the limit is ${replica.heardLimit}`;
    }
    if (this.nowMs >= Math.max(endsAtMs, this.endsAtMs[gen] ?? 0))
      this.broken ??= `S2: admitted after the end of window ${gen}`;
  }
}

function ascending(a: number, b: number): number {
  return a - b;
}

function newReplica(parts: Parts, heardLimit: number): Replica {
  return { pool: parts.pool.createPermitPool(), uses: [], busy: true, heardLimit, key: undefined };
}

function copied(pool: PermitPool): PermitPool {
  const { length, runs } = pool.waiting;
  return { ...pool, waiting: { length, runs: runs.map((run) => ({ ...run })) } };
}
