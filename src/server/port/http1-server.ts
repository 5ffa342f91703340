import type { Socket } from "node:net";
import type { Http1ReadBy } from "../../ambient/metrics.ts";
import type { Http1FastPath } from "../../rpc/fast-path/http1-fast-path.ts";
import type { RequestListener } from "../../rpc/request-listener.ts";
import { type Connections, sweepEveryMs, type Timeouts } from "./connections.ts";
import type { Guard } from "./guard.ts";
import { Http1Connection, type Http1Deps } from "./http1-connection.ts";
import { NodeHttp1 } from "./node-http1.ts";
import { RoundRobin } from "./round-robin.ts";

export interface Http1Options {
  readonly listener: RequestListener;
  /** The complete response to bytes that are not an HTTP request. Called once for each that is sent. */
  readonly malformed: (error: Error) => string;
  /** Absent: Node reads everything. */
  readonly fastPath?: Http1FastPath;
  /** Called for each request. */
  readonly onHttp1Request?: (readBy: Http1ReadBy) => void;
  readonly guard: Guard;
}

/** All HTTP/1.1 connections. */
export class Http1Server implements Connections {
  readonly #timeouts: Timeouts;
  readonly #deps: Http1Deps;
  readonly #connections = new Set<Http1Connection>();
  #isClosing = false;

  constructor(options: Http1Options, timeouts: Timeouts) {
    const { listener, malformed, fastPath, onHttp1Request: onRequest = () => {}, guard } = options;
    this.#timeouts = timeouts;
    this.#deps = {
      fastPath,
      node: new NodeHttp1(listener, malformed, guard, timeouts),
      roundRobin: new RoundRobin(guard),
      guard,
      timeoutResponse: () => malformed(Object.assign(new Error("timed out"), { code: "ERR_HTTP_REQUEST_TIMEOUT" })),
      onRequest,
    };
  }

  serve(socket: Socket, seen: Buffer): void {
    const connection = new Http1Connection(socket, this.#deps);
    this.#connections.add(connection);
    socket.on("close", () => this.#connections.delete(connection));
    if (this.#isClosing) connection.startShutdown();
    connection.receive(seen);
  }

  startShutdown(): void {
    this.#isClosing = true;
    for (const connection of this.#connections) connection.startShutdown();
  }

  closeIdle(): void {
    for (const connection of this.#connections) if (connection.isIdle) connection.socket.destroy();
  }

  sweep(): void {
    const everyMs = sweepEveryMs(this.#timeouts);
    for (const connection of this.#connections) {
      this.#deps.guard.run(connection.socket, () => connection.sweep(everyMs, this.#timeouts));
    }
  }

  /** Stops Node's timer. */
  stop(): void {
    this.#deps.node.stop();
  }
}
