import type { EventEmitter } from "node:events";
import net from "node:net";
import type { Ambient } from "../../ambient/ambient.ts";

/** A socket, an HTTP/2 session or stream, a request or a response. */
interface Destroyable {
  destroy(error?: Error): unknown;
}

const logEveryMs = 1000;

/**
 * Keeps one client's failure away from the others. An exception while a connection or stream is served, or an error
 * event without a listener, destroys that connection or stream and is counted. It never becomes an uncaught exception,
 * which would end the process and all connections with it.
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
        // The emitter's own `emit`, which some of Node's classes override.
        return Object.getPrototypeOf(this).emit.call(this, event, ...args);
      } catch (thrown) {
        fail(this instanceof net.Server ? args.find(isDestroyable) : this, thrown);
        return true;
      }
    };
  }

  /**
   * Guards every listener of this emitter from now on, Node's own listeners included. If a server's event fails, the
   * first connection, stream or request among the event's arguments is destroyed.
   */
  watch(emitter: EventEmitter): void {
    emitter.emit = this.#emit;
  }

  /** For work that is not started by an event of the connection: timers, and callbacks from elsewhere. */
  run(served: Destroyable, work: () => void): void {
    try {
      work();
    } catch (thrown) {
      this.#fail(served, thrown);
    }
  }

  /** For work that continues after an event, with what was waited for. */
  runAfter<Value>(served: Destroyable, awaited: Promise<Value>, work: (value: Value) => void): void {
    awaited.then(
      (value) => this.run(served, () => work(value)),
      (thrown: unknown) => this.#fail(served, thrown),
    );
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
      // Node has already destroyed it.
    }
  }
}

/** Over HTTP/2 the stream is destroyed: destroying only the request object would leave it open. */
function victimOf(served: unknown): unknown {
  const stream = (served as { readonly stream?: unknown } | null | undefined)?.stream;
  return isDestroyable(stream) ? stream : served;
}

function isDestroyable(value: unknown): value is Destroyable {
  return typeof (value as Partial<Destroyable> | null | undefined)?.destroy === "function";
}
