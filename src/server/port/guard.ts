import type { EventEmitter } from "node:events";
import net from "node:net";
import type { Ambient } from "../../ambient/ambient.ts";

/** A socket, an HTTP/2 session or stream, a request or a response. */
interface Destroyable {
  destroy(error?: Error): unknown;
}

const logEveryMs = 1000;

/**
 * Keeps one client's failure away from the others. What is thrown while a connection or stream is served, and an error
 * event that has no listener, destroys that connection or stream and is counted; it never becomes an uncaught exception,
 * which would end the process and with it everybody's connection.
 */
export class Guard {
  readonly #deps: Pick<Ambient, "clock" | "log" | "metrics">;
  readonly #emit: EventEmitter["emit"];
  #logAgainAtMs = Number.NEGATIVE_INFINITY;

  constructor(deps: Pick<Ambient, "clock" | "log" | "metrics">) {
    this.#deps = deps;
    const fail = (victim: unknown, thrown: unknown) => this.#fail(victim, thrown);
    // One function for all emitters: a closure for each would cost more than the call.
    this.#emit = function guardedEmit(this: EventEmitter, event, ...args) {
      try {
        return emitOf(this).call(this, event, ...args);
      } catch (thrown) {
        fail(this instanceof net.Server ? args.find(isDestroyable) : this, thrown);
        return true;
      }
    };
  }

  /**
   * Everything that hears an event of this emitter is guarded from now on, Node's own listeners included. An event of a
   * server concerns the first connection, stream or request among its arguments.
   */
  watch(emitter: EventEmitter): void {
    emitter.emit = this.#emit;
  }

  /** For work that no event of the connection starts: timers, and callbacks of others. */
  run(served: Destroyable, work: () => void): void {
    try {
      work();
    } catch (thrown) {
      this.#fail(served, thrown);
    }
  }

  /** For work that goes on after an event. */
  settle(served: Destroyable, work: Promise<unknown>): void {
    work.catch((thrown: unknown) => this.#fail(served, thrown));
  }

  #fail(served: unknown, thrown: unknown): void {
    const { clock, log, metrics } = this.#deps;
    metrics.servingFailed();
    if (clock.monotonicMs() >= this.#logAgainAtMs) {
      this.#logAgainAtMs = clock.monotonicMs() + logEveryMs;
      log.error("serving a connection failed", thrown);
    }
    try {
      const victim = victimOf(served);
      if (isDestroyable(victim)) victim.destroy();
    } catch {
      // Node has taken it apart already.
    }
  }
}

/** A request over HTTP/2 can be destroyed without its stream, which would stay open then. */
function victimOf(served: unknown): unknown {
  const stream = (served as { readonly stream?: unknown } | null | undefined)?.stream;
  return isDestroyable(stream) ? stream : served;
}

/** The emitter's own way to emit, which classes of Node's override. */
function emitOf(emitter: EventEmitter): EventEmitter["emit"] {
  return Object.getPrototypeOf(emitter).emit;
}

function isDestroyable(value: unknown): value is Destroyable {
  return typeof (value as Partial<Destroyable> | null | undefined)?.destroy === "function";
}
