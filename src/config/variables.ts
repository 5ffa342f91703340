import type { Secret } from "../domain/secret.ts";
import {
  addresses,
  certificates,
  databaseUrl,
  host,
  nonEmpty,
  numberBetween,
  oneOf,
  oneOrTwoSecrets,
  onOrOff,
  optionalPath,
  origins,
  otlpHeaders,
  publicUrl,
  redisUrl,
  rootKeys,
  wholeNumber,
  zeroOrOne,
} from "./parse-setting.ts";

export type Role = "all" | "edge" | "coordinator";
export type LogLevel = "debug" | "info" | "warn" | "error";

/** One value for each variable of the environment. */
export interface Variables {
  /** A file of further settings. What the environment sets is not read from it. */
  readonly settingsFile: string | undefined;
  /** `all`: everything. `edge`: serves verifications, and reaches the data over coordinators. `coordinator`: only that. */
  readonly role: Role;
  readonly host: string;
  readonly port: number;
  /** Files of the public port's certificate and private key. Both are set or none; absent: cleartext. */
  readonly tlsCert: string | undefined;
  readonly tlsKey: string | undefined;
  /** The origins whose pages in browsers may call methods that need no root key. */
  readonly corsOrigins: readonly string[];
  /** Threads that serve the port. With 1, the main thread does everything. */
  readonly workers: number;
  readonly dataDir: string;
  /** Absent: the embedded store. */
  readonly databaseUrl: Secret | undefined;
  /** Whether a start on an empty store is refused. Otherwise it creates one. */
  readonly storeMustExist: boolean;
  /** Where `latchkey copy` copies the embedded store to. */
  readonly copyTo: Secret | undefined;
  readonly databaseConnectionsMax: number;
  readonly usageLanes: number;
  readonly usageTimeoutMs: number;
  /** Absent: this replica is alone. */
  readonly redisUrl: Secret | undefined;
  /** CA certificates for Redis, in PEM, instead of the ones that Node trusts. */
  readonly redisCa: string | undefined;
  readonly windowsMax: number;
  readonly freeWindowsMax: number;
  /** Addresses of the coordinators of an edge. */
  readonly coordinators: readonly string[];
  readonly rootKeys: readonly Secret[];
  /** Whether a new root key is generated where the one that was generated is retired. */
  readonly generateRootKey: boolean;
  /** Whether a verification needs a root key too. */
  readonly verifyAuth: "open" | "required";
  /** Where callers reach the service, for links in errors; empty: links are relative. */
  readonly publicUrl: string;
  /** `implicit`: the first key of an API creates it. `explicit`: only `apis.createApi` does. */
  readonly apis: "implicit" | "explicit";
  readonly internalHost: string;
  readonly internalPort: number;
  /** Any of them is accepted; edges show the first. Two while one is being replaced. */
  readonly internalSecrets: readonly Secret[];
  /** Files of the internal listener's certificate and private key. Both are set or none; absent: cleartext. */
  readonly internalTlsCert: string | undefined;
  readonly internalTlsKey: string | undefined;
  /** The network between edges and coordinators is private: the internal port may be cleartext there. */
  readonly internalPrivate: boolean;
  /** CA certificates for coordinators, in PEM, instead of the ones that Node trusts. */
  readonly internalCa: string | undefined;
  /** CA certificates in PEM. Who shows a certificate of theirs on the internal port needs no secret. */
  readonly internalClientCa: string | undefined;
  readonly cacheTtlMs: number;
  readonly cacheKeysMax: number;
  /** How many days audit events are kept. 0: for ever. */
  readonly auditDays: number;
  /** Most calls that may wait at the same time, for a look-up, a permit or a commit. */
  readonly callsMax: number;
  /** Most open connections on the public port. */
  readonly connectionsMax: number;
  /** Whether the fast path serves verifications where it can. */
  readonly fastPath: boolean;
  readonly drainMs: number;
  readonly logLevel: LogLevel;
  /** `auto`: text to a terminal, else JSON. */
  readonly logFormat: "auto" | "json" | "text";
  /** Which verifications leave a line in the log. */
  readonly logVerifications: "none" | "refused" | "all";
  /** Where traces are sent: the base URL of all signals, or the URL of traces. Both empty: nothing is traced. */
  readonly otlpEndpoint: string;
  readonly otlpTracesEndpoint: string;
  /** `name=value` pairs that are sent along. */
  readonly otlpHeaders: Secret | undefined;
  readonly serviceName: string;
  /** The share of calls that are traced if their caller has not decided. */
  readonly traceRatio: number;
}

/** One environment variable. `docs/configuration.md` is tested against this list. */
export interface Variable<Value> {
  readonly name: string;
  readonly fallback: string;
  /** Whether the value may come from a file named by `<name>_FILE` instead of the environment. */
  readonly secret?: true;
  /** Whether a running process takes over a new value. The others need a restart. */
  readonly live?: true;
  /** Throws an Error whose message completes "<NAME> …". It must not repeat the value of a secret. */
  readonly parse: (text: string) => Value;
}

export const variables: { readonly [Setting in keyof Variables]: Variable<Variables[Setting]> } = {
  settingsFile: { name: "LATCHKEY_SETTINGS_FILE", fallback: "", parse: optionalPath },
  role: { name: "LATCHKEY_ROLE", fallback: "all", parse: oneOf("all", "edge", "coordinator") },
  host: { name: "HOST", fallback: "127.0.0.1", parse: host },
  port: { name: "PORT", fallback: "8080", parse: wholeNumber(0, 65_535) },
  tlsCert: { name: "LATCHKEY_TLS_CERT", fallback: "", parse: optionalPath },
  tlsKey: { name: "LATCHKEY_TLS_KEY", fallback: "", parse: optionalPath },
  corsOrigins: { name: "LATCHKEY_CORS_ORIGINS", fallback: "", parse: origins },
  workers: { name: "LATCHKEY_WORKERS", fallback: "1", parse: wholeNumber(1, 64) },
  dataDir: { name: "LATCHKEY_DATA_DIR", fallback: "./data", parse: nonEmpty },
  databaseUrl: { name: "DATABASE_URL", fallback: "", secret: true, parse: databaseUrl },
  storeMustExist: {
    name: "LATCHKEY_STORE",
    fallback: "create",
    parse: (text) => oneOf("create", "existing")(text) === "existing",
  },
  copyTo: { name: "LATCHKEY_COPY_TO", fallback: "", secret: true, parse: databaseUrl },
  databaseConnectionsMax: {
    name: "LATCHKEY_DATABASE_CONNECTIONS_MAX",
    fallback: "10",
    parse: wholeNumber(1, 1000),
  },
  usageLanes: { name: "LATCHKEY_USAGE_LANES", fallback: "2", parse: wholeNumber(1, 16) },
  usageTimeoutMs: { name: "LATCHKEY_USAGE_TIMEOUT_MS", fallback: "235", parse: wholeNumber(50, 60_000) },
  redisUrl: { name: "REDIS_URL", fallback: "", secret: true, parse: redisUrl },
  redisCa: { name: "LATCHKEY_REDIS_CA", fallback: "", secret: true, parse: certificates("LATCHKEY_REDIS_CA") },
  windowsMax: { name: "LATCHKEY_WINDOWS_MAX", fallback: "1000000", parse: wholeNumber(1, 16_000_000) },
  freeWindowsMax: { name: "LATCHKEY_FREE_WINDOWS_MAX", fallback: "1000000", parse: wholeNumber(1, 16_000_000) },
  coordinators: { name: "LATCHKEY_COORDINATORS", fallback: "", parse: addresses },
  rootKeys: { name: "LATCHKEY_ROOT_KEY", fallback: "", secret: true, live: true, parse: rootKeys },
  generateRootKey: { name: "LATCHKEY_GENERATE_ROOT_KEY", fallback: "0", parse: zeroOrOne },
  verifyAuth: { name: "LATCHKEY_VERIFY_AUTH", fallback: "open", parse: oneOf("open", "required") },
  publicUrl: { name: "LATCHKEY_PUBLIC_URL", fallback: "", parse: publicUrl },
  apis: { name: "LATCHKEY_APIS", fallback: "implicit", parse: oneOf("implicit", "explicit") },
  internalHost: { name: "LATCHKEY_INTERNAL_HOST", fallback: "127.0.0.1", parse: host },
  internalPort: { name: "LATCHKEY_INTERNAL_PORT", fallback: "8081", parse: wholeNumber(0, 65_535) },
  internalSecrets: {
    name: "LATCHKEY_INTERNAL_SECRET",
    fallback: "",
    secret: true,
    live: true,
    parse: oneOrTwoSecrets("secret"),
  },
  internalTlsCert: { name: "LATCHKEY_INTERNAL_TLS_CERT", fallback: "", parse: optionalPath },
  internalTlsKey: { name: "LATCHKEY_INTERNAL_TLS_KEY", fallback: "", parse: optionalPath },
  internalPrivate: { name: "LATCHKEY_INTERNAL_PRIVATE", fallback: "0", parse: zeroOrOne },
  internalCa: {
    name: "LATCHKEY_INTERNAL_CA",
    fallback: "",
    secret: true,
    live: true,
    parse: certificates("LATCHKEY_INTERNAL_CA"),
  },
  internalClientCa: {
    name: "LATCHKEY_INTERNAL_CLIENT_CA",
    fallback: "",
    secret: true,
    live: true,
    parse: certificates("LATCHKEY_INTERNAL_CLIENT_CA"),
  },
  cacheTtlMs: { name: "LATCHKEY_CACHE_TTL_MS", fallback: "60000", parse: wholeNumber(0, 86_400_000) },
  cacheKeysMax: { name: "LATCHKEY_CACHE_KEYS_MAX", fallback: "100000", parse: wholeNumber(1, 10_000_000) },
  auditDays: { name: "LATCHKEY_AUDIT_DAYS", fallback: "365", live: true, parse: wholeNumber(0, 36_500) },
  callsMax: { name: "LATCHKEY_CALLS_MAX", fallback: "10000", live: true, parse: wholeNumber(1, 1_000_000) },
  connectionsMax: { name: "LATCHKEY_CONNECTIONS_MAX", fallback: "20000", live: true, parse: wholeNumber(1, 1_000_000) },
  fastPath: { name: "LATCHKEY_FAST_PATH", fallback: "on", parse: onOrOff },
  drainMs: { name: "LATCHKEY_DRAIN_MS", fallback: "500", live: true, parse: wholeNumber(0, 600_000) },
  logLevel: {
    name: "LATCHKEY_LOG_LEVEL",
    fallback: "info",
    live: true,
    parse: oneOf("debug", "info", "warn", "error"),
  },
  logFormat: { name: "LATCHKEY_LOG_FORMAT", fallback: "auto", parse: oneOf("auto", "json", "text") },
  logVerifications: {
    name: "LATCHKEY_LOG_VERIFICATIONS",
    fallback: "none",
    live: true,
    parse: oneOf("none", "refused", "all"),
  },
  otlpEndpoint: { name: "OTEL_EXPORTER_OTLP_ENDPOINT", fallback: "", parse: publicUrl },
  otlpTracesEndpoint: { name: "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", fallback: "", parse: publicUrl },
  otlpHeaders: { name: "OTEL_EXPORTER_OTLP_HEADERS", fallback: "", secret: true, parse: otlpHeaders },
  serviceName: { name: "OTEL_SERVICE_NAME", fallback: "latchkey", parse: nonEmpty },
  traceRatio: { name: "OTEL_TRACES_SAMPLER_ARG", fallback: "1", parse: numberBetween(0, 1) },
};
