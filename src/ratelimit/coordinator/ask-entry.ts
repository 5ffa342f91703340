import type { Metrics } from "../../ambient/metrics.ts";
import type { BatchEntry } from "../../batching/keyed-batcher.ts";
import type { PermitAsk } from "../../domain/permit-window.ts";
import type { WaitingRoom } from "../../domain/waiting-room.ts";
import type { PermitResult, SubjectAsk } from "../../store/permit-ledger.ts";
import { notExecuted, type PermitAnswer } from "../permit-channel.ts";
import type { Holders, Member } from "./holders.ts";
import { boundRuns, mergeAsks, type Share, shareOut } from "./merge-asks.ts";

/** What the entries of a coordinator share. */
export interface AskEntryDeps {
  readonly holders: Holders;
  /** Where asks wait. */
  readonly places: WaitingRoom;
  readonly metrics: Metrics;
}

/** All asks for one subject that wait. To the ledger they are one, and what it grants is split between them. */
export class AskEntry implements BatchEntry<PermitResult> {
  readonly key: string;
  readonly subject: string;
  readonly #deps: AskEntryDeps;
  #asks: WaitingAsk[] = [];

  constructor(key: string, subject: string, deps: AskEntryDeps) {
    this.key = key;
    this.subject = subject;
    this.#deps = deps;
  }

  /** `member`: the replica that asks. Undefined: nobody gets anything, the window is only inspected. */
  join(member: Member | undefined, ask: PermitAsk, expiresAtMs: number): Promise<PermitAnswer> {
    return new Promise((resolve, reject) => {
      this.#asks.push({ member, ask, expiresAtMs, resolve, reject });
    });
  }

  /**
   * Called when the entry is taken into a batch: asks may have waited for longer than their replicas do. Those that are not
   * executed are answered. False: none is left.
   */
  close(nowMs: number): boolean {
    this.#asks = this.#asks.filter((waiting) => {
      const executed = executedPart(waiting, nowMs);
      if (executed !== undefined) {
        waiting.ask = executed;
        return true;
      }
      this.#deps.places.leave();
      waiting.resolve(notExecuted);
      return false;
    });
    return this.#asks.length > 0;
  }

  /** All asks as one for the ledger. */
  merge(): SubjectAsk {
    const asks = boundRuns(this.#asks.map(({ ask }) => ask));
    this.#asks.forEach((waiting, i) => {
      waiting.ask = asks[i] as PermitAsk;
    });
    const asking = this.#members();
    const holders = asking.length === 0 ? 0 : this.#deps.holders.count(this.subject, asking);
    return { subject: this.subject, ...mergeAsks(asks, holders) };
  }

  /** Each ask gets its share of what was granted. Replicas that hold permits which others lack are asked to return them. */
  resolve(result: PermitResult): void {
    const { holders, places } = this.#deps;
    if (result.outcome === "settled") this.#split(result);
    else {
      if (result.outcome === "missing") holders.forget(this.subject);
      for (const { resolve } of this.#asks) resolve(result);
    }
    places.leave(this.#asks.length);
  }

  reject(error: unknown): void {
    for (const { reject } of this.#asks) reject(error);
    this.#deps.places.leave(this.#asks.length);
  }

  #split(result: PermitResult & { readonly outcome: "settled" }): void {
    const { holders, metrics } = this.#deps;
    const asks = this.#asks.map(({ ask }) => ask);
    const shares = shareOut(asks, result.granted);
    this.#asks.forEach(({ member, ask, resolve }, i) => {
      const { granted } = shares[i] as Share;
      resolve({ ...result, granted });
      if (member === undefined) return;
      holders.note(this.subject, member, result.gen, ask, granted);
      metrics.permits("granted", granted);
      metrics.permits("returned", ask.returned);
    });
    // What others hold can complete a cost only if there is enough of it.
    const mostLeft = result.left + result.outstanding;
    const isRecalled = shares.some(({ lacking }) => lacking !== undefined && lacking <= mostLeft);
    const asking = this.#members();
    const isInspected = asking.length < this.#asks.length;
    if ((isRecalled || isInspected) && result.outstanding > 0) this.#recall(isInspected ? [] : asking);
  }

  #recall(except: readonly Member[]): void {
    for (const member of this.#deps.holders.others(this.subject, except)) {
      this.#deps.metrics.permits("recalled", 1);
      member.onRecall(this.subject);
    }
  }

  #members(): readonly Member[] {
    return this.#asks.flatMap(({ member }) => member ?? []);
  }
}

interface WaitingAsk {
  readonly member: Member | undefined;
  /** What the ledger is asked: the part that is executed is decided when the batch is formed. */
  ask: PermitAsk;
  readonly expiresAtMs: number;
  readonly resolve: (answer: PermitAnswer) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * An ask that has become too old is not executed. For a replica whose stream is closed nothing is granted, because no
 * answer reaches it; what it returned and reported counts.
 */
function executedPart({ member, ask, expiresAtMs }: WaitingAsk, nowMs: number): PermitAsk | undefined {
  if (nowMs > expiresAtMs) return undefined;
  if (!member?.isGone) return ask;
  return ask.returned + ask.spent > 0 ? { ...ask, waiting: [], inAdvance: 0 } : undefined;
}
