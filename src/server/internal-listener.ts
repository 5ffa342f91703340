import type { IncomingMessage } from "node:http";
import { isIP } from "node:net";
import type { Ambient } from "../ambient/ambient.ts";
import { equalDigests, sha256 } from "../ambient/crypto.ts";
import type { MetricsRegistry } from "../ambient/metrics.ts";
import type { Settings } from "../config/settings.ts";
import type { Secret } from "../domain/secret.ts";
import { ApiError, type ErrorCode } from "../rpc/api-error.ts";
import { createRefusals, ErrorLog } from "../rpc/error-log.ts";
import type { HttpHandler } from "../rpc/http-handler.ts";
import { createRequestIds } from "../rpc/request-ids.ts";
import { createRequestListener } from "../rpc/request-listener.ts";
import { defaultTimeouts, type Timeouts } from "./port/connections.ts";
import { Guard } from "./port/guard.ts";
import { OnePort } from "./port/one-port.ts";
import { hasTrustedCertificate, type TlsOptions } from "./port/tls-handshakes.ts";

export type InternalListener = Awaited<ReturnType<typeof startInternalListener>>;

/** Who may use the internal port, and how it speaks to them. */
export interface InternalAccess {
  /** Any of them suffices. */
  readonly secrets: readonly Secret[];
  /** Whether a client certificate suffices too. Without secrets and certificates, everybody on this machine may use it. */
  readonly takesCertificates?: boolean;
  /** Absent: cleartext. */
  readonly tls?: TlsOptions | undefined;
}

/** Where it listens, and to whom. */
export interface InternalAddress {
  readonly host: string;
  readonly port: number;
  /** A Unix socket, which then takes the place of the port. */
  readonly path?: string;
  readonly access: InternalAccess;
}

export interface InternalListenerOptions extends InternalAddress, Pick<Ambient, "clock" | "random" | "log"> {
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
/** Connections that have not sent the secret yet. A handshake takes up to 1 ms of processor time and 70 KB. */
const strangersMax = 256;
const notFoundHint = "this is the internal port, with GET /metrics; keys and probes are served on the public port";

/**
 * Metrics and internal services on a separate listener: on loopback, or protected by a shared secret or by client
 * certificates. Rejects if the port cannot be bound.
 */
export async function startInternalListener(options: InternalListenerOptions) {
  const { host, port, path, access, services, metrics, log } = options;
  let check = createCheck(access);
  const guard =
    (handler: HttpHandler): HttpHandler =>
    (req, ...rest) => {
      const refusal = check(req);
      if (refusal === undefined) {
        onePort.trust(req);
        return handler(req, ...rest);
      }
      metrics.internalRefused();
      throw new ApiError(...refusal);
    };
  const handlers = new Map([["/metrics", createMetricsHandler(metrics)] as const, ...services]);
  const guarded = new Map([...handlers].map(([path, handler]) => [path, guard(handler)]));
  const newRequestId = createRequestIds(options);
  const errorLog = new ErrorLog(options, { port: "internal" });
  const { onRefused, malformed, overloaded } = createRefusals(errorLog, newRequestId);
  const onePort: OnePort = new OnePort({
    listener: createRequestListener(guarded, { newRequestId, log, notFoundHint, onRefused }),
    malformed,
    guard: new Guard(options),
    timeouts: options.timeouts ?? internalTimeouts,
    connectionLimit: {
      connectionsMax,
      strangersMax,
      response: overloaded,
      onRejected: () => metrics.shed("connection"),
    },
    tls: access.tls,
    onHandshakeFailed: () => metrics.handshakeFailed("internal"),
  });
  const bound = await (path === undefined ? onePort.listen(port, host) : onePort.listenOnSocket(path).then(() => 0));
  return {
    port: bound,
    /** For requests and connections from now on. */
    reload(next: InternalAccess) {
      check = createCheck(next);
      onePort.setTls(next.tls);
    },
    close: () => onePort.close(closeGraceMs),
  };
}

function createMetricsHandler(metrics: MetricsRegistry): HttpHandler {
  return async (_, res) => {
    const text = await metrics.render();
    res.writeHead(200, { "content-type": metrics.contentType }).end(text);
  };
}

type Refusal = readonly [code: ErrorCode, message: string];

const noSecret: Refusal = [
  "UNAUTHORIZED",
  "the internal listener asks for Authorization: Bearer and the shared secret",
];
const otherHost: Refusal = [
  "FORBIDDEN",
  "without a secret the internal port is served as localhost or by an IP address only; " +
    "to use another name, set LATCHKEY_INTERNAL_SECRET and send it",
];

/** Why a request is refused. It has to send one of the secrets, or come over a connection with a client certificate. */
function createCheck(access: InternalAccess): (req: IncomingMessage) => Refusal | undefined {
  const { secrets, takesCertificates = false } = access;
  const expected = secrets.map((secret) => sha256(`Bearer ${secret.reveal()}`));
  if (expected.length === 0 && !takesCertificates) return (req) => (isForThisMachine(req) ? undefined : otherHost);
  return ({ headers, socket }) => {
    if (takesCertificates && hasTrustedCertificate(socket)) return undefined;
    const presented = sha256(headers.authorization ?? "");
    // Every one is compared, also after a match.
    return expected.filter((known) => equalDigests(known, presented)).length > 0 ? undefined : noSecret;
  };
}

/**
 * Whether a request does not come from a web page of somebody else (DNS rebinding). A page whose name resolves to a
 * loopback address could read the answer, and its browser sends that name. It always sends one, so a request without
 * any, as of HTTP/1.0, is from no browser. `Origin` needs no look: the answer allows no other origin to read it.
 */
function isForThisMachine({ headers }: IncomingMessage): boolean {
  return [headers[":authority"], headers.host].every((name) => name === undefined || isLocalName(String(name)));
}

/** Takes `name`, `name:port`, `[address]` and `[address]:port`. Nobody can make an IP address resolve to another one. */
function isLocalName(authority: string): boolean {
  const name = authority.replace(/:\d*$/, "").replace(/^\[(.*)\]$/, "$1");
  return name.toLowerCase() === "localhost" || isIP(name) !== 0;
}

export function internalAccessOf({ internalSecrets, internalTls, internalClientCa }: Settings): InternalAccess {
  const tls: TlsOptions | undefined = internalTls && {
    cert: internalTls.certPem,
    key: internalTls.keyPem,
    // It has no renegotiation.
    versionMin: "TLSv1.3",
    clientCa: internalClientCa,
    isClientCertRequired: internalSecrets.length === 0,
  };
  return { secrets: internalSecrets, takesCertificates: internalClientCa !== undefined, tls };
}
