import type { Ambient } from "../ambient/ambient.ts";
import { equalDigests, sha256 } from "../ambient/crypto.ts";
import type { MetricsRegistry } from "../ambient/metrics.ts";
import type { Secret } from "../domain/secret.ts";
import { ApiError } from "../rpc/api-error.ts";
import type { HttpHandler } from "../rpc/http-handler.ts";
import { malformedResponse } from "../rpc/http1-response.ts";
import { createRequestIds } from "../rpc/request-ids.ts";
import { createRequestListener } from "../rpc/request-listener.ts";
import { defaultTimeouts } from "./port/connections.ts";
import { Guard } from "./port/guard.ts";
import { OnePort } from "./port/one-port.ts";

export interface InternalListener {
  readonly port: number;
  close(): Promise<void>;
}

export interface InternalListenerOptions extends Pick<Ambient, "clock" | "random" | "log"> {
  readonly host: string;
  readonly port: number;
  readonly secret: Secret | undefined;
  /** The internal services, by path. */
  readonly services: ReadonlyMap<string, HttpHandler>;
  readonly metrics: MetricsRegistry;
}

/** A replica's stream stays open for as long as the replica runs. This is the longest time of a timer. */
const timeouts = { ...defaultTimeouts, requestMs: 2 ** 31 - 1 };
const closeGraceMs = 100;

/**
 * Metrics and internal services on a separate listener: on loopback, or protected by a shared secret. Rejects if the
 * port cannot be bound.
 */
export async function startInternalListener(options: InternalListenerOptions): Promise<InternalListener> {
  const { host, port, secret, services, metrics, log } = options;
  const guard = createGuard(secret, metrics);
  const handlers = new Map([["/metrics", createMetricsHandler(metrics)] as const, ...services]);
  const guarded = new Map([...handlers].map(([path, handler]) => [path, guard(handler)]));
  const newRequestId = createRequestIds(options);
  const onePort = new OnePort({
    listener: createRequestListener(guarded, { newRequestId, log }),
    malformed: (error) => malformedResponse(error, newRequestId()),
    guard: new Guard(options),
    timeouts,
  });
  return { port: await onePort.listen(port, host), close: () => onePort.close(closeGraceMs) };
}

function createMetricsHandler(metrics: MetricsRegistry): HttpHandler {
  return async (_, res) => {
    const text = await metrics.render();
    res.writeHead(200, { "content-type": metrics.contentType }).end(text);
  };
}

/** If a secret is set, rejects and counts requests without it. */
function createGuard(secret: Secret | undefined, metrics: MetricsRegistry): (handler: HttpHandler) => HttpHandler {
  if (secret === undefined) return (handler) => handler;
  const expected = sha256(`Bearer ${secret.reveal()}`);
  return (handler) =>
    (req, ...rest) => {
      if (equalDigests(sha256(req.headers.authorization ?? ""), expected)) return handler(req, ...rest);
      metrics.internalRefused();
      throw new ApiError("UNAUTHORIZED", "the internal listener asks for Authorization: Bearer and the shared secret");
    };
}
