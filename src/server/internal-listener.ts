import type { IncomingMessage } from "node:http";
import type { Ambient } from "../ambient/ambient.ts";
import { equalDigests, sha256 } from "../ambient/crypto.ts";
import type { MetricsRegistry } from "../ambient/metrics.ts";
import type { Settings } from "../config/settings.ts";
import type { TlsFiles } from "../config/tls-files.ts";
import type { Secret } from "../domain/secret.ts";
import { ApiError } from "../rpc/api-error.ts";
import type { HttpHandler } from "../rpc/http-handler.ts";
import { malformedResponse, overloadedResponse } from "../rpc/http1-response.ts";
import { createRequestIds } from "../rpc/request-ids.ts";
import { createRequestListener } from "../rpc/request-listener.ts";
import { CertificateFiles } from "./certificate-files.ts";
import { defaultTimeouts, type Timeouts } from "./port/connections.ts";
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
  /** Absent: cleartext. */
  readonly tls?: TlsFiles | undefined;
  /** For tests. */
  readonly timeouts?: Timeouts;
  /** The internal services, by path. */
  readonly services: ReadonlyMap<string, HttpHandler>;
  readonly metrics: MetricsRegistry;
}

/** A replica's stream stays open for as long as the replica runs. This is the longest time of a timer. */
const internalTimeouts = { ...defaultTimeouts, requestMs: 2 ** 31 - 1 };
const closeGraceMs = 100;
/** Edges and scrapers of metrics: far more than there are. */
const connectionsMax = 1000;
/** Connections on which the secret was not shown yet. A handshake takes up to 1 ms of processor time and 70 KB. */
const strangersMax = 256;
const certificateEveryMs = 10_000;

/**
 * Metrics and internal services on a separate listener: on loopback, or protected by a shared secret. Rejects if the
 * port cannot be bound.
 */
export async function startInternalListener(options: InternalListenerOptions): Promise<InternalListener> {
  const { host, port, secret, services, metrics, log } = options;
  const files = options.tls && new CertificateFiles(options.tls, options);
  const guard = createGuard(secret, metrics, (req) => onePort.trust(req));
  const handlers = new Map([["/metrics", createMetricsHandler(metrics)] as const, ...services]);
  const guarded = new Map([...handlers].map(([path, handler]) => [path, guard(handler)]));
  const newRequestId = createRequestIds(options);
  const onePort: OnePort = new OnePort({
    listener: createRequestListener(guarded, { newRequestId, log }),
    malformed: (error) => malformedResponse(error, newRequestId()),
    guard: new Guard(options),
    timeouts: options.timeouts ?? internalTimeouts,
    connectionLimit: {
      connectionsMax,
      strangersMax,
      response: () => overloadedResponse(newRequestId()),
      onRejected: () => metrics.shed("connection"),
    },
    ...(files && { tls: files.identity }),
  });
  const bound = await onePort.listen(port, host);
  const renewing = files && renewCertificate(files, onePort, options);
  return {
    port: bound,
    close() {
      clearInterval(renewing);
      return onePort.close(closeGraceMs);
    },
  };
}

function renewCertificate(
  files: CertificateFiles,
  onePort: OnePort,
  { metrics }: InternalListenerOptions,
): NodeJS.Timeout {
  metrics.gauge(
    "latchkey_internal_certificate_expires_seconds",
    "Unix time at which the certificate of the internal port expires.",
    () => files.expiresMs / 1000,
  );
  const renew = async () => {
    const renewed = await files.refresh();
    if (renewed !== undefined) onePort.setTls(renewed);
  };
  return setInterval(() => void renew(), certificateEveryMs).unref();
}

function createMetricsHandler(metrics: MetricsRegistry): HttpHandler {
  return async (_, res) => {
    const text = await metrics.render();
    res.writeHead(200, { "content-type": metrics.contentType }).end(text);
  };
}

/** If a secret is set, rejects and counts requests without it. The others are trusted. */
function createGuard(
  secret: Secret | undefined,
  metrics: MetricsRegistry,
  trust: (req: IncomingMessage) => void,
): (handler: HttpHandler) => HttpHandler {
  const expected = secret && sha256(`Bearer ${secret.reveal()}`);
  return (handler) =>
    (req, ...rest) => {
      if (expected === undefined || equalDigests(sha256(req.headers.authorization ?? ""), expected)) {
        trust(req);
        return handler(req, ...rest);
      }
      metrics.internalRefused();
      throw new ApiError("UNAUTHORIZED", "the internal listener asks for Authorization: Bearer and the shared secret");
    };
}

/** The settings take care that both are set or none. */
export function tlsFilesOf({ internalTlsCert, internalTlsKey }: Settings): TlsFiles | undefined {
  if (internalTlsCert === undefined || internalTlsKey === undefined) return undefined;
  return { certFile: internalTlsCert, keyFile: internalTlsKey };
}
