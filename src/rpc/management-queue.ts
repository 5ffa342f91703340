import { performance } from "node:perf_hooks";
import type { Ambient } from "../ambient/ambient.ts";
import type { MaybePromise } from "../domain/maybe-promise.ts";

/** How long management calls are gathered on a thread that verifications keep busy: until no other comes, and no longer. */
const gathered = { untilQuietMs: 40, atMostMs: 100 };
/**
 * A caller that waits for each answer before it makes its next call is noticed by three calls in a row that came right after
 * an answer. It is remembered until none comes for a while, or until others have had calls under way for so long that it
 * could not be seen. A refusal is no answer: strangers must not be able to end the gathering.
 */
const serialCaller = { callsToNotice: 3, followsMs: 5, rememberedMs: 20, besideOthersMs: 200 };
/** For such callers: the time from one begin to the next, for each call that was begun. */
const pacedMsPerCall = 1;
/** How much of its time a busy thread works, and how many verifications it answers for each management call. */
const busyFrom = { utilisation: 0.7, verificationsPerCall: 20 };
/** How long a judgement holds. One over a longer time than the maximum says nothing about now. */
const judgedMs = { min: 50, max: 5000 };
/** Everyone can make calls that wait, and each holds its body: beyond this number the first of them is begun. */
const waitingMax = 100;
/** In one turn of the event loop, calls that have waited are begun for so long. */
const workMsPerTurn = 1;

export interface ManagementQueueDeps extends Pick<Ambient, "clock"> {
  /** How much of its time the thread has worked since the last question. Replaced in tests. */
  readonly utilisation?: () => number;
}

/**
 * Verifications come first: where they keep a thread busy, management calls wait until none has come for 40 ms, or one waits
 * for 100 ms, and are begun together. One that comes after hundreds of verifications finds none of its code and data in the
 * processor's caches, and takes several times as long as the next one right after it (adr 39). Gathering does not help a
 * caller that waits for each answer: as long as there is one, calls begin immediately, up to 1000 a second in all.
 * Threads that are not busy begin them immediately. Calls always begin in order of arrival.
 */
export class ManagementQueue {
  readonly #clock: Ambient["clock"];
  readonly #utilisation: () => number;
  /** They begin calls and do not throw. */
  readonly #waiting: (() => void)[] = [];
  /** When those that wait are begun at the latest. */
  #beginsByMs = 0;
  #beginsPacedFromMs = Number.NEGATIVE_INFINITY;
  /** Calls that are begun and not answered yet. */
  #underWay = 0;
  #answeredAtMs = Number.NEGATIVE_INFINITY;
  /** How many in a row came right after an answer. */
  #followed = 0;
  #followedAtMs = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;
  #isBusy = false;
  #judgedAtMs = Number.NEGATIVE_INFINITY;
  /** Since it was judged. */
  #verifications = 0;
  #calls = 0;

  constructor({ clock, utilisation = createUtilisation() }: ManagementQueueDeps) {
    this.#clock = clock;
    this.#utilisation = utilisation;
  }

  /** To be called for each verification. */
  verificationBegins(): void {
    this.#verifications++;
  }

  /** Resolves and rejects as the call does. */
  run<Answer>(call: () => MaybePromise<Answer>): Promise<Answer> {
    const answer = new Promise<Answer>((resolve, reject) => {
      const begin = () => {
        this.#underWay++;
        try {
          resolve(call());
        } catch (error) {
          reject(error);
        }
      };
      this.#calls++;
      const nowMs = this.#clock.monotonicMs();
      this.#judge(nowMs);
      if (!this.#isBusy && this.#waiting.length === 0) return begin();
      this.#waiting.push(begin);
      this.#setTimer(nowMs);
      if (this.#waiting.length > waitingMax) this.#waiting.shift()?.();
    });
    const onEnd = () => {
      this.#underWay--;
    };
    const onAnswer = () => {
      onEnd();
      this.#answeredAtMs = this.#clock.monotonicMs();
    };
    answer.then(onAnswer, onEnd);
    return answer;
  }

  /** For a call that was just put at the end of those that wait. */
  #setTimer(nowMs: number): void {
    const isFirst = this.#waiting.length === 1;
    if (isFirst) this.#lookForSerialCaller(nowMs);
    const isPaced = this.#followed >= serialCaller.callsToNotice;
    if (isFirst) this.#beginsByMs = isPaced ? this.#beginsPacedFromMs : nowMs + gathered.atMostMs;
    if (!this.#isBusy) this.#beginsByMs = nowMs;
    const leftMs = this.#beginsByMs - nowMs;
    clearTimeout(this.#timer);
    if (isFirst && leftMs <= 0) this.#beginAll();
    else this.#timer = setTimeout(() => this.#beginAll(), isPaced ? leftMs : Math.min(gathered.untilQuietMs, leftMs));
  }

  /** A call that comes while another is under way says nothing: it can be anyone's. */
  #lookForSerialCaller(nowMs: number): void {
    const { callsToNotice, followsMs, rememberedMs, besideOthersMs } = serialCaller;
    const withinMs = this.#followed < callsToNotice ? followsMs : rememberedMs;
    if (this.#underWay === 0 && nowMs - this.#answeredAtMs <= withinMs) {
      this.#followed++;
      this.#followedAtMs = nowMs;
    } else if (this.#underWay === 0 || nowMs - this.#followedAtMs > besideOthersMs) this.#followed = 0;
  }

  #beginAll(): void {
    this.#beginsPacedFromMs = this.#clock.monotonicMs() + this.#waiting.length * pacedMsPerCall;
    this.#beginSome();
  }

  #judge(nowMs: number): void {
    const sinceMs = nowMs - this.#judgedAtMs;
    if (sinceMs < judgedMs.min) return;
    const utilisation = this.#utilisation();
    this.#isBusy =
      sinceMs <= judgedMs.max &&
      utilisation >= busyFrom.utilisation &&
      this.#verifications >= this.#calls * busyFrom.verificationsPerCall;
    this.#judgedAtMs = nowMs;
    this.#verifications = 0;
    this.#calls = 0;
  }

  /** Those that are left over are begun in the next turn. */
  #beginSome(): void {
    const untilMs = this.#clock.monotonicMs() + workMsPerTurn;
    do this.#waiting.shift()?.();
    while (this.#waiting.length > 0 && this.#clock.monotonicMs() < untilMs);
    if (this.#waiting.length > 0) setImmediate(() => this.#beginSome());
  }
}

function createUtilisation(): () => number {
  let last = performance.eventLoopUtilization();
  return () => {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, last);
    last = now;
    return utilization;
  };
}
