import { Health } from "../../gen/health/v1/health_pb.js";
import { KeysService } from "../../gen/latchkey/v1/keys_pb.js";
import { hotMethods, routes, services } from "../../gen/latchkey/v1/services.ts";
import type { Ambient } from "../ambient/ambient.ts";
import type { AdjustableLog } from "../ambient/log.ts";
import { OtlpExporter } from "../ambient/otlp-exporter.ts";
import type { TracingOptions } from "../ambient/tracing-options.ts";
import type { Settings } from "../config/settings.ts";
import type { TlsIdentity } from "../config/tls-files.ts";
import type { MaybePromise } from "../domain/maybe-promise.ts";
import type { InspectingLimiter } from "../ratelimit/limiter.ts";
import { createAllEndpoints } from "../rpc/all-endpoints.ts";
import { setPublicUrl } from "../rpc/api-error.ts";
import { authzPath } from "../rpc/authz/authz-contract.ts";
import { authzHandler, createAuthzPage } from "../rpc/authz/authz-handler.ts";
import { createRunCall, type Endpoint } from "../rpc/call.ts";
import { traceCalls } from "../rpc/call-spans.ts";
import { createConnectEndpoints } from "../rpc/connect-endpoints.ts";
import { allowOrigins } from "../rpc/cors.ts";
import { createDocumentPages } from "../rpc/document-pages.ts";
import { createRefusals, ErrorLog } from "../rpc/error-log.ts";
import { createHotGrpc, type TakeStream } from "../rpc/fast-path/hot-grpc.ts";
import { Http1FastPath } from "../rpc/fast-path/http1-fast-path.ts";
import { createForward } from "../rpc/forwarded-calls.ts";
import { createGateway, createGatewayPages } from "../rpc/gateway.ts";
import { createHealth } from "../rpc/health.ts";
import { createHealthWatch } from "../rpc/health-watch.ts";
import { type HttpHandler, servedByNode } from "../rpc/http-handler.ts";
import { type RoutedMethod, routedMethodsOf } from "../rpc/json-call.ts";
import { OpenStreams } from "../rpc/open-streams.ts";
import { createProbes } from "../rpc/probes.ts";
import { Readiness } from "../rpc/readiness.ts";
import { addReflection } from "../rpc/reflection.ts";
import { createRequestIds } from "../rpc/request-ids.ts";
import { createRequestListener, type RequestListener } from "../rpc/request-listener.ts";
import { prepareLater } from "../rpc/validate.ts";
import { VerificationLog } from "../rpc/verification-log.ts";
import type { KeyLookup, OwnersOfKeys } from "../store/key-lookup.ts";
import type { CheckRootKey, ReadHolders } from "../store/root-access.ts";
import type { UsageLedger } from "../store/usage-ledger.ts";
import type { OpenedCore } from "./opened-core.ts";
import { defaultTimeouts, type Timeouts } from "./port/connections.ts";
import { Guard } from "./port/guard.ts";
import { OnePort } from "./port/one-port.ts";
import type { TlsOptions } from "./port/tls-handshakes.ts";
import type { Serving } from "./serving.ts";

export interface PublicApiDeps extends Ambient {
  readonly log: AdjustableLog;
  readonly keys: KeyLookup;
  readonly owners: OwnersOfKeys;
  readonly usage: UsageLedger;
  readonly limiter: InspectingLimiter;
  readonly checkRootKey: CheckRootKey;
  readonly readHolders: ReadHolders;
  readonly manages: OpenedCore["manages"];
  /** Whether the fast path serves what it can, and hot methods have their codecs. */
  readonly fastPath: boolean;
  /** `required`: methods that are public otherwise need a root key with their permission too. */
  readonly verifyAuth: "open" | "required";
  /** Where callers reach the service; empty if that is not known. */
  readonly publicUrl: string;
  /** The origins whose pages may call public methods. */
  readonly corsOrigins: readonly string[];
  readonly timeouts?: Timeouts;
  readonly settings: ServingSettings;
  /** Absent: no call is traced. */
  readonly tracing?: TracingOptions | undefined;
  /** Updates readiness before it is reported to a caller. */
  readonly refreshReadiness?: () => MaybePromise<void>;
}

/** The settings of the public port that may change while it is served. */
export interface ServingSettings extends Pick<Settings, "connectionsMax" | "logLevel" | "logVerifications"> {
  /** Absent: cleartext. */
  readonly tls: Pick<TlsIdentity, "certPem" | "keyPem"> | undefined;
}

/** Each takes about ten kilobytes. */
const watchesMax = { total: 1000, perConnection: 20 };
/** Reflection, and watches in other protocols. Each takes about sixty kilobytes. */
const connectStreamsMax = { total: 100, perConnection: 10 };

export interface PublicApi extends Serving {
  readonly onePort: OnePort;
  /** Answers the requests that Node's own servers read. */
  readonly listener: RequestListener;
  setReady(ready: boolean): void;
  reload(settings: ServingSettings): void;
  /** Stops listening, then sends what was traced. */
  close(graceMs: number): Promise<void>;
}

/** Everything that is served on the public port. */
export function createPublicApi(deps: PublicApiDeps): PublicApi {
  const { fastPath, tracing, timeouts = defaultTimeouts, settings } = deps;
  setPublicUrl(deps.publicUrl);
  const readiness = new Readiness(deps.refreshReadiness);
  const shutdown = new AbortController();
  const reflectedServices = [...services, Health];
  const verificationLog = new VerificationLog(deps, settings.logVerifications);
  const exporter = tracing && new OtlpExporter(tracing, deps);
  const errorLog = new ErrorLog(deps);
  const { management, carryOut } = { management: undefined, carryOut: undefined, ...deps.manages };
  const forward = carryOut && createForward(carryOut);
  const plainCall = createRunCall({ ...deps, management, forward, verificationLog, errorLog });
  const runCall = exporter ? traceCalls(plainCall, { ...deps, ...tracing, exporter }) : plainCall;
  /** The methods of all services. */
  const endpoints = createAllEndpoints({ front: deps, core: management && deps }).map((endpoint) =>
    deps.verifyAuth === "required" ? { ...endpoint, isPublic: false } : endpoint,
  );
  const serviceNames = reflectedServices.map((service) => service.typeName);
  const health = createHealth(readiness, serviceNames);

  const onStreamRefused = () => deps.metrics.shed("stream");
  const watches = new OpenStreams(watchesMax, onStreamRefused);
  deps.metrics.gauge("latchkey_health_watches", "Open streams of Health/Watch over gRPC.", () => watches.size);

  const connectEndpoints = createConnectEndpoints({
    endpoints: [...endpoints, ...health.endpoints],
    addStreams(router) {
      health.addWatch(router);
      addReflection(router, reflectedServices);
    },
    runCall,
    shutdownSignal: shutdown.signal,
    openStreams: new OpenStreams(connectStreamsMax, onStreamRefused),
  });
  const methods = routedMethodsOf(routes, endpoints, fastPath ? hotMethods : []);
  const verifyKey = endpoints.find(({ method }) => method === KeysService.method.verifyKey) as Endpoint;
  const authz = createAuthzPage(verifyKey, runCall, deps);
  /** What is answered without a body. */
  const ownPages = new Map([...createProbes(readiness), ...createDocumentPages()]);
  const handlers = new Map([
    ...createGateway(methods, runCall),
    ...connectEndpoints,
    ...servedByNode(ownPages),
    [authzPath, authzHandler(authz)] as const,
  ]);
  const pages = new Map([...createGatewayPages(methods, runCall), ...ownPages, [authzPath, authz] as const]);
  const ignoresOrigin = deps.corsOrigins.length === 0;
  if (!ignoresOrigin) {
    const origins = new Set(deps.corsOrigins);
    for (const path of publicPathsOf(methods)) {
      handlers.set(path, allowOrigins(handlers.get(path) as HttpHandler, origins));
      pages.delete(path);
    }
  }
  const newRequestId = createRequestIds(deps);
  const { onRefused, malformed, overloaded } = createRefusals(errorLog, newRequestId, deps.metrics);
  const watchHealth = createHealthWatch({
    readiness,
    statusOf: health.statusOf,
    shutdownSignal: shutdown.signal,
    watches,
    newRequestId,
    onRefused,
  });
  const listener = createRequestListener(handlers, { newRequestId, log: deps.log, onRefused });
  const onePort = new OnePort({
    listener,
    ...(fastPath && {
      fastPath: new Http1FastPath({
        methods,
        pages,
        nodePaths: new Set(handlers.keys()),
        ignoresOrigin,
        runCall,
        newRequestId,
        log: deps.log,
        onRefused,
        httpDate: createHttpDate(deps.clock),
        keepAliveMs: timeouts.keepAliveMs,
        isTracing: tracing !== undefined,
      }),
    }),
    takeStream: fastPath ? either(createHotGrpc({ endpoints, runCall, newRequestId }), watchHealth) : watchHealth,
    malformed,
    onHttp1Request: (readBy) => deps.metrics.http1Request(readBy),
    guard: new Guard(deps),
    timeouts,
    onStreamRefused,
    tls: tlsOptionsOf(settings),
    onHandshakeFailed: () => deps.metrics.handshakeFailed("public"),
    connectionLimit: {
      connectionsMax: settings.connectionsMax,
      response: overloaded,
      onRejected: () => deps.metrics.shed("connection"),
    },
  });
  return {
    onePort,
    listener,
    listen: (port, host) => onePort.listen(port, host),
    startShutdown: () => onePort.startShutdown(),
    setReady(ready) {
      readiness.set(ready);
      if (ready) prepareLater(endpoints);
    },
    reload(next) {
      deps.log.setLevel(next.logLevel);
      verificationLog.logged = next.logVerifications;
      onePort.setConnectionsMax(next.connectionsMax);
      onePort.setTls(tlsOptionsOf(next));
    },
    stopStreams: () => shutdown.abort(),
    async close(graceMs) {
      await onePort.close(graceMs);
      await exporter?.stop();
    },
  };
}

/** Where methods are called that need no root key, over JSON, and over Connect and gRPC-Web. */
function publicPathsOf(methods: readonly RoutedMethod[]): string[] {
  const open = methods.filter(({ endpoint }) => endpoint.isPublic);
  return open.flatMap(({ path, endpoint: { method } }) => [path, `/${method.parent.typeName}/${method.name}`]);
}

export function tlsOptionsOf({ tls }: Pick<ServingSettings, "tls">): TlsOptions | undefined {
  return tls && { cert: tls.certPem, key: tls.keyPem, versionMin: "TLSv1.2" };
}

/** Offers a stream to the first, then to the second if the first does not take it. */
function either(first: TakeStream, second: TakeStream): TakeStream {
  return (...stream) => first(...stream) || second(...stream);
}

/** The current Date header. Formatted once a second: formatting it for every answer would take longer than the answer. */
function createHttpDate(clock: Ambient["clock"]): () => string {
  let printed: string | undefined;
  return () => {
    if (printed === undefined) {
      const nowMs = clock.nowMs();
      printed = new Date(nowMs).toUTCString();
      const forget = () => {
        printed = undefined;
      };
      setTimeout(forget, 1000 - (nowMs % 1000)).unref();
    }
    return printed;
  };
}
