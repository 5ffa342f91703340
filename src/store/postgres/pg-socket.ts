import net from "node:net";

/** How long one step of connecting may take: one address, then everything up to the server's readiness. */
const defaultStepMs = 2000;
/** Node gives up an address by its own timer. Ours ends the last one, so it must come later. */
const marginMs = 100;

/**
 * The socket of a connection to Postgres. An attempt to connect ends by itself: without that, a lost SYN would be sent
 * again after 1, 2, 4, 8 … seconds, and a database that is back would stay unknown for as long as it was away.
 */
export class PgSocket extends net.Socket {
  readonly #stepMs: number;
  readonly #lookup: net.LookupFunction | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: { stepMs?: number | undefined; lookup?: net.LookupFunction | undefined } = {}) {
    super();
    this.#stepMs = options.stepMs ?? defaultStepMs;
    this.#lookup = options.lookup;
    this.on("connectionAttempt", () => this.#beginStep());
    this.on("connect", () => this.#beginStep());
    this.on("close", () => clearTimeout(this.#timer));
  }

  /** As node-postgres calls it: with a port and a host, or with the path of a Unix socket. */
  override connect(...args: readonly unknown[]): this {
    this.#beginStep();
    const [port, host] = args;
    if (typeof port !== "number") return super.connect(port as string);
    return super.connect({
      port,
      host: host as string,
      // If the name has several addresses, the next one is tried after the same time.
      autoSelectFamily: true,
      autoSelectFamilyAttemptTimeout: this.#stepMs,
      ...(this.#lookup && { lookup: this.#lookup }),
    });
  }

  /** The server is ready: from now on time-outs are those of statements. */
  onReady(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  /** Ends the connection with a reset. Closed politely, the kernel would go on sending what was written. */
  abandon(): void {
    clearTimeout(this.#timer);
    // `resetAndDestroy` would wait for the connection; and only TCP can be reset.
    if (this.connecting || this.remoteAddress === undefined) this.destroy();
    else this.resetAndDestroy();
  }

  #beginStep(): void {
    clearTimeout(this.#timer);
    const timeOut = () => this.destroy(Object.assign(new Error("no connection in time"), { code: "ETIMEDOUT" }));
    this.#timer = setTimeout(timeOut, this.#stepMs + marginMs).unref();
  }
}
