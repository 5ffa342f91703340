/*
 * How long a caller waits before it gets 503. `pathMs` is the round trip from the front to the ledger. Near the ledger all
 * is short: what counts there is that a call does not wait longer than half a second for one of its stages.
 */

const stageMinMs = 450;
const marginMs = 100;

/**
 * The longest wait on a slow machine. An answer that is late because this process got no processor time says nothing about
 * the ledger. Our client gives up after 2 s.
 */
export const slowWaitMaxMs = 1500;

/** For a look-up or a use. Either may first wait for the batch before it, which takes a part of the path. */
export function stageTimeoutMs(pathMs: number): number {
  return Math.max(stageMinMs, 1.5 * pathMs + marginMs);
}

/**
 * For a permit. A request can come right after an ask was sent, and the answer to that can come shortly before the end of
 * a window, when more permits would come too late. Then it waits for an answer, for the next window and for the answer to
 * an ask of its own: three paths, and half of one for batches on the way. Without a path the ledger is in this process: it
 * cannot be lost, only slow.
 */
export function permitTimeoutMs(pathMs: number | undefined): number {
  return pathMs === undefined ? slowWaitMaxMs : Math.max(stageMinMs, 3.5 * pathMs + marginMs);
}

/** What deadlines are measured with. */
export interface LoopTime {
  monotonicMs(): number;
  /** How late the event loop was, added up. */
  lateMs(): number;
}

/**
 * The end of a wait that began when this was made. Time in which the event loop was late does not count, as long as the
 * whole wait is not longer than `slowWaitMaxMs`.
 */
export class Deadline {
  readonly #time: LoopTime;
  readonly #timeoutMs: number;
  readonly #startedMs: number;
  readonly #lateBeforeMs: number;

  constructor(time: LoopTime, timeoutMs: number) {
    this.#time = time;
    this.#timeoutMs = timeoutMs;
    this.#startedMs = time.monotonicMs();
    this.#lateBeforeMs = time.lateMs();
  }

  /** Zero or less when it has passed. It can grow again later only by as much as the event loop was late. */
  get leftMs(): number {
    const waitedMs = this.#time.monotonicMs() - this.#startedMs;
    const lateMs = this.#time.lateMs() - this.#lateBeforeMs;
    const excusedMs = Math.min(lateMs, Math.max(0, slowWaitMaxMs - this.#timeoutMs));
    return this.#timeoutMs + excusedMs - waitedMs;
  }

  get hasPassed(): boolean {
    return this.leftMs <= 0;
  }
}
