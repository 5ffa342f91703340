import type { Ambient } from "../ambient/ambient.ts";
import { type BatchEntry, KeyedBatcher } from "../batching/keyed-batcher.ts";
import type { MaybePromise } from "../domain/maybe-promise.ts";
import type { Spend } from "../domain/verification.ts";
import type { WaitingRoom } from "../domain/waiting-room.ts";
import type { LedgerWatch } from "./ledger-watch.ts";
import {
  type Charge,
  type ChargeLedger,
  type ChargeOutcome,
  type ChargeResult,
  type ChargeRun,
  partOf,
  runsMax,
  type SpentCounters,
  spendOf,
  type UsageEngine,
  type UsageLedger,
} from "./usage-ledger.ts";

/** Most runs of one commit. */
const commitRunsMax = 2000;

interface UsageLedgerDeps extends Pick<Ambient, "clock" | "metrics"> {
  /** Where callers wait for a commit. */
  readonly waitingRoom: WaitingRoom;
  readonly watch?: LedgerWatch;
}

/** Settles any number of waiting callers with few commits: all callers of one counter that wait are charged together. */
export class CoalescingUsageLedger implements UsageLedger, ChargeLedger {
  readonly #batcher: KeyedBatcher<ChargeEntry, readonly ChargeResult[]>;
  readonly #waitingRoom: WaitingRoom;
  readonly #watch: LedgerWatch | undefined;

  constructor(engines: readonly UsageEngine[], { clock, metrics, waitingRoom, watch }: UsageLedgerDeps) {
    this.#waitingRoom = waitingRoom;
    this.#watch = watch;
    this.#batcher = new KeyedBatcher({
      name: "usage",
      commits: engines.map((engine) => (batch) => this.#settle(engine, batch)),
      take: (entry, nowMs) => this.#take(entry, nowMs),
      weight: { of: ({ charges }) => charges.length, max: commitRunsMax },
      clock,
      metrics,
    });
  }

  spend(counters: SpentCounters, cost: number): Promise<Spend> {
    return this.#submit(counters[1] ?? counters[0], spendRequest(counters, cost)) as Promise<Spend>;
  }

  charge(subject: string, run: ChargeRun, expiresAtMs: number): Promise<ChargeOutcome> {
    return this.#submit(subject, { run, expiresAtMs, isSpend: false }) as Promise<ChargeOutcome>;
  }

  drained(): Promise<void> {
    return this.#batcher.drained();
  }

  /** An edge has counted its own callers: here all charges of an entry take one place. */
  #submit(subject: string, request: ChargeRequest): Promise<Spend | ChargeOutcome> {
    const waiting = this.#batcher.waiting(subject);
    const hasPlace = request.isSpend || waiting === undefined || waiting.isFullFor(request);
    const refusal = hasPlace ? this.#waitingRoom.enter(waiting === undefined ? 0 : waiting.places) : undefined;
    if (refusal !== undefined) return Promise.reject(refusal);
    if (waiting !== undefined) return waiting.join(request, hasPlace);
    const entry = new ChargeEntry(subject, this.#waitingRoom);
    const answer = entry.join(request, hasPlace);
    this.#batcher.add(entry);
    return answer;
  }

  /** Called by the batcher when an entry goes into a batch. */
  #take(entry: ChargeEntry, nowMs: number): boolean {
    const behind = entry.detachBehind();
    if (behind !== undefined) this.#batcher.add(behind);
    return entry.dropExpired(nowMs);
  }

  /** Called by the batcher with each batch. What it answers goes to `resolve` of the entries. */
  async #settle(engine: UsageEngine, batch: readonly ChargeEntry[]): Promise<readonly (readonly ChargeResult[])[]> {
    const charges = batch.flatMap((entry) => entry.charges);
    const results = await engine.settle(charges);
    if (results.length !== charges.length) throw new Error(`${results.length} results for ${charges.length} charges`);
    for (const result of results) {
      if (result.outcome === "settled" && result.refilledAheadMs !== undefined)
        this.#watch?.onRefillAhead(result.refilledAheadMs);
    }
    let from = 0;
    return batch.map(({ charges }) => {
      from += charges.length;
      return results.slice(from - charges.length, from);
    });
  }
}

/** What one caller wants: a verification, or an edge for its own callers. */
interface ChargeRequest {
  readonly run: ChargeRun;
  readonly expiresAtMs: number;
  /** Whether it is a verification, which wants a `Spend`. */
  readonly isSpend: boolean;
}

/** One use of a caller in this process. All of them share it: an object for each would cost time. */
const oneUse: ChargeRequest = { run: { cost: 1, count: 1 }, expiresAtMs: Number.POSITIVE_INFINITY, isSpend: true };

function spendRequest([own, shared]: SpentCounters, cost: number): ChargeRequest {
  if (shared === undefined && cost === 1) return oneUse;
  return { ...oneUse, run: shared === undefined ? { cost, count: 1 } : { own, cost, count: 1 } };
}

/**
 * All callers of one counter that wait, in order of arrival. Equal neighbours are one charge, so a busy counter costs one
 * row of a batch. Callers with two counters gather at the one that they share.
 */
class ChargeEntry implements BatchEntry<readonly ChargeResult[]> {
  /** The counter that all callers are charged on. */
  readonly key: string;
  /** What all callers want together. */
  readonly charges: MergedCharge[] = [];
  /** Places in the waiting room that callers have, here and in the entries behind this one. */
  places = 0;
  #callers: Caller[] = [];
  /** Those of its own callers. */
  #ownPlaces = 0;
  /** The callers beyond the most runs of a batch: it is queued when this entry is taken. */
  #behind: ChargeEntry | undefined;
  /** The last of the entries behind this one, or itself. */
  #last: ChargeEntry = this;
  /** When the first caller stops waiting. */
  #expiresAtMs = Number.POSITIVE_INFINITY;
  readonly #waitingRoom: WaitingRoom;

  constructor(subject: string, waitingRoom: WaitingRoom) {
    this.key = subject;
    this.#waitingRoom = waitingRoom;
  }

  join(request: ChargeRequest, hasPlace: boolean): Promise<Spend | ChargeOutcome> {
    return new Promise((resolve, reject) => {
      if (this.isFullFor(request)) {
        this.#last.#behind = new ChargeEntry(this.key, this.#waitingRoom);
        this.#last = this.#last.#behind;
      }
      this.#last.#add({ request, hasPlace, resolve, reject });
      if (hasPlace) this.places++;
    });
  }

  /** Whether the last entry behind this one, or itself, has no room for it. */
  isFullFor(request: ChargeRequest): boolean {
    return !this.#last.#hasRoomFor(request);
  }

  #hasRoomFor({ run }: ChargeRequest): boolean {
    const last = this.charges[this.charges.length - 1];
    return last === undefined || this.charges.length < runsMax || isRunOf(last, run, this.key);
  }

  #add(caller: Caller): void {
    const { key, charges } = this;
    const { run, expiresAtMs } = caller.request;
    this.#callers.push(caller);
    if (caller.hasPlace) this.#ownPlaces++;
    if (expiresAtMs < this.#expiresAtMs) this.#expiresAtMs = expiresAtMs;
    const last = charges[charges.length - 1];
    if (last !== undefined && isRunOf(last, run, key)) last.count += run.count;
    else charges.push(chargeOf(run, key));
  }

  /** The callers beyond the most runs of a batch, as an entry of their own: to be queued when this one is taken. */
  detachBehind(): ChargeEntry | undefined {
    const behind = this.#behind;
    if (behind === undefined) return undefined;
    behind.places = this.places - this.#ownPlaces;
    behind.#last = this.#last;
    this.#behind = undefined;
    return behind;
  }

  /** Callers that came too late are not executed. False: no other is left. */
  dropExpired(nowMs: number): boolean {
    if (nowMs > this.#expiresAtMs) this.#dropExpired(nowMs);
    return this.#callers.length > 0;
  }

  #dropExpired(nowMs: number): void {
    const callers = this.#callers;
    this.#callers = [];
    this.#ownPlaces = 0;
    this.charges.length = 0;
    for (const caller of callers) {
      if (nowMs <= caller.request.expiresAtMs) this.#add(caller);
      else {
        if (caller.hasPlace) this.#waitingRoom.leave();
        caller.resolve(notExecuted);
      }
    }
  }

  /** Each caller gets its part of what was granted, in order, with what remained after it. */
  resolve(results: readonly ChargeResult[]): void {
    // The charge that the next caller belongs to, and how many uses of it are in front of that caller.
    let at = 0;
    let before = 0;
    for (const { request, resolve } of this.#callers) {
      const { cost, count } = request.run;
      if (before === this.charges[at]?.count) {
        at++;
        before = 0;
      }
      const result = results[at] as ChargeResult;
      resolve(request.isSpend ? spendOf(result, cost, before) : partOf(result, cost, before, count));
      before += count;
    }
    this.#waitingRoom.leave(this.#ownPlaces);
  }

  reject(error: unknown): void {
    for (const { reject } of this.#callers) reject(error);
    this.#waitingRoom.leave(this.#ownPlaces);
    this.#behind?.reject(error);
  }
}

interface Caller {
  readonly request: ChargeRequest;
  /** Whether it has a place in the waiting room. */
  readonly hasPlace: boolean;
  readonly resolve: (answer: MaybePromise<Spend | ChargeOutcome>) => void;
  readonly reject: (error: unknown) => void;
}

type MergedCharge = Charge & { count: number };

const notExecuted = { outcome: "notExecuted" } as const;

function chargeOf({ own, cost, count }: ChargeRun, subject: string): MergedCharge {
  return own === undefined ? { subject, cost, count } : { subject: own, shared: subject, cost, count };
}

/** Whether a run of the counter's entry is merged into this charge of the same entry. */
function isRunOf(charge: Charge, { own, cost }: ChargeRun, subject: string): boolean {
  return charge.cost === cost && charge.subject === (own ?? subject);
}
