import type { Picked } from "../../src/domain/cost-queue.ts";
import { nextAsk, nextDueMs } from "../../src/domain/permit-asking.ts";
import { type PermitMessage, PermitPool, type PermitVerdict, recallPermits } from "../../src/domain/permit-pool.ts";
import { settleGrant, settleLost } from "../../src/domain/permit-settling.ts";
import { commitPermits, releasePermits, takePermits } from "../../src/domain/permit-spending.ts";
import { exchangePermits, neverOpened, type PermitWindow } from "../../src/domain/permit-window.ts";
import { wantedBy } from "../ratelimit/strict/asks.ts";
import { SeededRandom } from "./seeded-random.ts";

export interface SimulatedLoad {
  readonly limit: number;
  readonly durationMs: number;
  readonly requestsPerSecond: number;
  readonly windows: number;
  /** One replica for each. */
  readonly rttsMs: readonly number[];
  /** Whether the ledger's side tells the other replicas when one lacks permits. */
  readonly recalls: boolean;
  readonly refusedShare?: number;
  readonly lostShare?: number;
  /** The first replica is gone from then on, with all it holds. */
  readonly crashAtMs?: number;
  /** What requests cost, each as often as the others. By default 1. */
  readonly costs?: readonly number[];
  readonly seed: number;
}

export interface SimulatedFigures {
  /** Admissions of each window but the last, which the end of the simulation cut off. */
  readonly perWindow: readonly number[];
  /** Denied requests of each cost. */
  readonly deniedByCost: ReadonlyMap<number, number>;
  readonly deniedMaxWaitMs: number;
  readonly meanWaitMs: number;
  readonly p99WaitMs: number;
  readonly callsPerAdmitted: number;
  readonly deniedLocallyShare: number;
  readonly unsettledDenials: number;
  readonly deniedMeanWaitMs: number;
}

/** Replicas with real pools and one real ledger, under Poisson demand, from event to event. */
export function simulate(load: SimulatedLoad): SimulatedFigures {
  return new Simulation(load).run();
}

interface Replica {
  readonly pool: PermitPool;
  readonly rttMs: number;
  queue: Request[];
  wakeAtMs: number;
  up: boolean;
}

interface Request {
  readonly arrivedAtMs: number;
  readonly cost: number;
}

const useMs = 2;
const lossNoticedMs = 200;

class Simulation {
  readonly #load: SimulatedLoad;
  readonly #random: SeededRandom;
  readonly #events = new EventQueue();
  readonly #replicas: readonly Replica[];
  readonly #admittedByGen = new Map<number, number>();
  readonly #waitsMs: number[] = [];
  #window: PermitWindow = neverOpened;
  #nowMs = 1;
  #calls = 0;
  #denied = 0;
  #deniedLocally = 0;
  #unsettled = 0;
  #deniedWaitMs = 0;
  #deniedMaxWaitMs = 0;
  readonly #deniedByCost = new Map<number, number>();

  constructor(load: SimulatedLoad) {
    this.#load = load;
    this.#random = new SeededRandom(load.seed);
    this.#replicas = load.rttsMs.map((rttMs) => ({
      pool: new PermitPool(),
      rttMs,
      queue: [],
      wakeAtMs: Number.POSITIVE_INFINITY,
      up: true,
    }));
  }

  run(): SimulatedFigures {
    const { windows, durationMs, crashAtMs } = this.#load;
    const [first] = this.#replicas;
    for (const replica of this.#replicas) this.#nextRequest(replica);
    if (crashAtMs !== undefined && first) this.#events.add(crashAtMs, () => (first.up = false));
    const endMs = windows * durationMs;
    while (this.#nowMs < endMs) {
      const [atMs, act] = this.#events.take();
      this.#nowMs = atMs;
      act();
    }
    const waitsMs = this.#waitsMs.toSorted((a, b) => a - b);
    return {
      perWindow: [...this.#admittedByGen].filter(([gen]) => gen < this.#window.gen).map(([, count]) => count),
      meanWaitMs: waitsMs.reduce((sum, each) => sum + each, 0) / waitsMs.length,
      p99WaitMs: waitsMs[Math.floor(waitsMs.length * 0.99)] ?? 0,
      callsPerAdmitted: this.#calls / waitsMs.length,
      deniedLocallyShare: this.#deniedLocally / this.#denied,
      unsettledDenials: this.#unsettled,
      deniedMeanWaitMs: this.#deniedWaitMs / this.#denied,
      deniedMaxWaitMs: this.#deniedMaxWaitMs,
      deniedByCost: this.#deniedByCost,
    };
  }

  #nextRequest(replica: Replica): void {
    const perMs = this.#load.requestsPerSecond / 1000 / this.#replicas.length;
    const pauseMs = -Math.log(this.#random.integer(1, 1_000_000) / 1_000_000) / perMs;
    this.#after(pauseMs, () => {
      if (!replica.up) return;
      this.#request(replica);
      this.#nextRequest(replica);
    });
  }

  #request(replica: Replica): void {
    const { costs } = this.#load;
    const request = { arrivedAtMs: this.#nowMs, cost: costs ? this.#random.pick(costs) : 1 };
    const take = takePermits(replica.pool, this.#nowMs, request.cost);
    if (take.outcome === "admitted") this.#use(replica, take.gen, request);
    else if (take.outcome === "wait") replica.queue.push(request);
    else {
      this.#deny(request);
      this.#deniedLocally++;
    }
    this.#pump(replica);
  }

  #deny({ arrivedAtMs, cost }: Request): void {
    const waitMs = this.#nowMs - arrivedAtMs;
    this.#denied++;
    this.#deniedByCost.set(cost, (this.#deniedByCost.get(cost) ?? 0) + 1);
    this.#deniedWaitMs += waitMs;
    this.#deniedMaxWaitMs = Math.max(this.#deniedMaxWaitMs, waitMs);
  }

  #use(replica: Replica, gen: number, { arrivedAtMs, cost }: Request): void {
    const refused = this.#random.chance(this.#load.refusedShare ?? 0);
    if (!refused) {
      this.#admittedByGen.set(gen, (this.#admittedByGen.get(gen) ?? 0) + cost);
      this.#waitsMs.push(this.#nowMs - arrivedAtMs);
    }
    this.#after(useMs, () => {
      if (refused) this.#settle(replica, releasePermits(replica.pool, gen, this.#nowMs, cost));
      else commitPermits(replica.pool, gen, cost);
      this.#pump(replica);
    });
  }

  #settle(replica: Replica, verdict: PermitVerdict): void {
    for (const request of leave(replica, verdict.admitted)) this.#use(replica, verdict.gen, request);
    for (const request of leave(replica, verdict.denied)) {
      this.#deny(request);
      if (!verdict.isFinal) this.#unsettled++;
    }
  }

  /** What the owner of a pool does after each call to it. */
  #pump(replica: Replica): void {
    if (!replica.up) return;
    const message = nextAsk(replica.pool, this.#nowMs);
    if (message !== undefined) this.#send(replica, message);
    const dueMs = nextDueMs(replica.pool, this.#nowMs);
    if (dueMs === undefined || dueMs === replica.wakeAtMs) return;
    replica.wakeAtMs = dueMs;
    this.#events.add(dueMs, () => {
      if (replica.wakeAtMs !== dueMs) return;
      replica.wakeAtMs = Number.POSITIVE_INFINITY;
      this.#pump(replica);
    });
  }

  #send(replica: Replica, message: PermitMessage): void {
    this.#calls++;
    const lost = this.#random.chance(this.#load.lostShare ?? 0) ? this.#random.pick(["ask", "reply"]) : undefined;
    if (lost) this.#after(lossNoticedMs, () => settleLost(replica.pool, message, this.#nowMs));
    if (lost) this.#after(lossNoticedMs, () => this.#pump(replica));
    if (lost === "ask") return;
    this.#after(replica.rttMs / 2, () => {
      const ask = { ...message.ask, holders: this.#replicas.length };
      const { window, grant } = exchangePermits(this.#window, ask, this.#load, this.#nowMs);
      this.#window = window;
      if (this.#load.recalls && grant.granted < wantedBy(ask)) this.#recallOthers(replica);
      if (lost === "reply") return;
      this.#after(replica.rttMs / 2, () => {
        if (!replica.up) return;
        this.#settle(replica, settleGrant(replica.pool, message, grant, this.#nowMs));
        this.#pump(replica);
      });
    });
  }

  #recallOthers(asker: Replica): void {
    for (const other of this.#replicas) {
      if (other === asker) continue;
      this.#after(other.rttMs / 2, () => {
        recallPermits(other.pool);
        this.#pump(other);
      });
    }
  }

  #after(delayMs: number, act: () => void): void {
    this.#events.add(this.#nowMs + delayMs, act);
  }
}

function leave(replica: Replica, picked: readonly Picked[]): Request[] {
  const gone: Request[] = [];
  const kept: Request[] = [];
  for (const { skip, count } of picked) {
    kept.push(...replica.queue.splice(0, skip));
    gone.push(...replica.queue.splice(0, count));
  }
  replica.queue = [...kept, ...replica.queue];
  return gone;
}

/** Events in the order of their time, and of their making when they fall together. */
class EventQueue {
  readonly #heap: (readonly [number, () => void, number])[] = [];
  #added = 0;

  add(atMs: number, act: () => void): void {
    const heap = this.#heap;
    let at = heap.push([atMs, act, this.#added++]) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (this.#before(parent, at)) return;
      this.#swap(parent, at);
      at = parent;
    }
  }

  take(): readonly [number, () => void, number] {
    const heap = this.#heap;
    this.#swap(0, heap.length - 1);
    const taken = heap.pop();
    if (taken === undefined) throw new Error("nothing happens any more");
    for (let at = 0; ; ) {
      let least = at;
      for (const child of [2 * at + 1, 2 * at + 2])
        if (child < heap.length && this.#before(child, least)) least = child;
      if (least === at) return taken;
      this.#swap(at, least);
      at = least;
    }
  }

  #before(a: number, b: number): boolean {
    const [aMs = 0, , aNumber = 0] = this.#heap[a] ?? [];
    const [bMs = 0, , bNumber = 0] = this.#heap[b] ?? [];
    return aMs < bMs || (aMs === bMs && aNumber < bNumber);
  }

  #swap(a: number, b: number): void {
    const heap = this.#heap;
    [heap[a], heap[b]] = [heap[b] as (typeof heap)[number], heap[a] as (typeof heap)[number]];
  }
}
