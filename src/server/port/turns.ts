import type { Socket } from "node:net";
import type { Guard } from "./guard.ts";

/** A connection that has more to do than it may do at once. */
interface Worker {
  readonly socket: Socket;
  /** Does a bounded part of the work. */
  work(): void;
}

/** Work for this many connections is done before others are heard again. */
const workersPerTurn = 4;

/** Connections with more to do take turns, so that one with thousands of requests does not hold up the others. */
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
    let turns = 0;
    for (const worker of this.#waiting) {
      if (turns++ === workersPerTurn) break;
      this.#waiting.delete(worker);
      // Whoever is added again while it works comes last; the set is not empty then, so the next run is arranged below.
      this.#guard.run(worker.socket, () => worker.work());
    }
    if (this.#waiting.size > 0) setImmediate(this.#run);
  }
}
