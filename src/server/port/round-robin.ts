import type { Socket } from "node:net";
import type { Guard } from "./guard.ts";

/** A connection with more work than it may do in one turn. */
interface Worker {
  readonly socket: Socket;
  /** Does a bounded part of the work. */
  work(): void;
}

/**
 * Round robin: connections with more work run one at a time, one in each turn of the event loop, so that a connection
 * with thousands of requests does not delay the others.
 */
export class RoundRobin {
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
    // A worker that adds itself again goes to the end. If the queue was empty, `add` also schedules the next run.
    this.#guard.run(worker.socket, () => worker.work());
    if (!isLast) setImmediate(this.#run);
  }
}
