import type { Socket } from "node:net";
import type { Guard } from "./guard.ts";

/** A connection that has more to do than it may do at once. */
interface Worker {
  readonly socket: Socket;
  /** Does a bounded part of the work. */
  work(): void;
}

/**
 * Connections with more to do take turns, one in each turn of the event loop, so that one with thousands of requests does
 * not hold up the others.
 */
export class Turns {
  readonly #guard: Guard;
  /** In order of arrival. */
  readonly #waiting = new Set<Worker>();
  readonly #run = () => this.#work();

  constructor(guard: Guard) {
    this.#guard = guard;
  }

  has(worker: Worker): boolean {
    return this.#waiting.has(worker);
  }

  add(worker: Worker): void {
    if (this.#waiting.size === 0) setImmediate(this.#run);
    this.#waiting.add(worker);
  }

  #work(): void {
    const [worker] = this.#waiting;
    if (worker === undefined) return;
    this.#waiting.delete(worker);
    const isLast = this.#waiting.size === 0;
    // If it adds itself while it works, it comes last. Where nobody else waits, that also arranges the next run.
    this.#guard.run(worker.socket, () => worker.work());
    if (!isLast) setImmediate(this.#run);
  }
}
