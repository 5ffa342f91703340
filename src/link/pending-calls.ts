import { Unavailable } from "../domain/unavailable.ts";

/**
 * Calls of one side of a link that have no answer yet. Each has a number that is unique among them; its answer carries
 * the same number. Number 0 is never used: it stands for a message that gets no answer.
 */
export class PendingCalls {
  readonly #callsMax: number;
  readonly #tooMany: string;
  readonly #calls = new Map<number, Call>();
  #lastNumber = 0;

  /** At most `callsMax` at the same time. One more is rejected with this message. */
  constructor(callsMax: number, tooMany: string) {
    this.#callsMax = callsMax;
    this.#tooMany = tooMany;
  }

  get size(): number {
    return this.#calls.size;
  }

  /**
   * Sends a call and resolves with its answer. `onOverdue` is called at most once, if the answer is late: see
   * `markOverdue`.
   */
  open<Answer>(send: (number: number) => void, onOverdue?: () => void): Promise<Answer> {
    if (this.#calls.size >= this.#callsMax)
      return Promise.reject(new Unavailable(this.#tooMany, { nothingDone: true }));
    const number = this.#nextNumber();
    send(number);
    return new Promise((resolve, reject) => {
      this.#calls.set(number, { resolve: resolve as (answer: unknown) => void, reject, onOverdue });
    });
  }

  /** A second answer to a call changes nothing. */
  resolve(number: number, answer: unknown): void {
    const call = this.#calls.get(number);
    this.#calls.delete(number);
    call?.resolve(answer);
  }

  reject(number: number, error: Error): void {
    const call = this.#calls.get(number);
    this.#calls.delete(number);
    call?.reject(error);
  }

  /** The other side is gone: no answer will come. */
  rejectAll(error: Error): void {
    const calls = [...this.#calls.values()];
    this.#calls.clear();
    for (const { reject } of calls) reject(error);
  }

  /** The other side is in doubt. Answers may still come, and are still taken. */
  markOverdue(): void {
    for (const call of [...this.#calls.values()]) {
      const { onOverdue } = call;
      call.onOverdue = undefined;
      onOverdue?.();
    }
  }

  /** Fits into 32 bits. After four billion calls the numbers begin again. */
  #nextNumber(): number {
    do this.#lastNumber = (this.#lastNumber + 1) >>> 0;
    while (this.#lastNumber === 0 || this.#calls.has(this.#lastNumber));
    return this.#lastNumber;
  }
}

interface Call {
  readonly resolve: (answer: unknown) => void;
  readonly reject: (error: Error) => void;
  onOverdue: (() => void) | undefined;
}
