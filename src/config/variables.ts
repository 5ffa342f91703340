import {
  addresses,
  certificates,
  databaseUrl,
  either,
  host,
  nonEmpty,
  numberBetween,
  oneOf,
  oneOrTwoSecrets,
  optionalPath,
  origins,
  otlpHeaders,
  publicUrl,
  redisUrl,
  rootKeys,
  wholeNumberBetween,
} from "./parse-setting.ts";

/** One environment variable. `docs/configuration.md` is tested against this list. */
export interface Variable<Value> {
  readonly name: string;
  /** Absent: an empty text. */
  readonly fallback?: string;
  /** Whether the value may come from a file named by `<name>_FILE` instead of the environment. */
  readonly secret?: true;
  /** Whether a running process takes over a new value. The others need a restart. */
  readonly live?: true;
  /** Throws an Error whose message completes "<NAME> …". It must not repeat the value of a secret. */
  readonly parse: (text: string, name: string) => Value;
}

export const variables = {
  /** A file of further settings. What the environment sets is not read from it. */
  settingsFile: { name: "LATCHKEY_SETTINGS_FILE", parse: optionalPath },
  /** `all`: everything. `edge`: serves verifications, and reaches the data over coordinators. `coordinator`: only that. */
  role: { name: "LATCHKEY_ROLE", fallback: "all", parse: oneOf("all", "edge", "coordinator") },
  host: { name: "HOST", fallback: "127.0.0.1", parse: host },
  port: { name: "PORT", fallback: "8080", parse: wholeNumberBetween(0, 65_535) },
  /** Files of the public port's certificate and private key. Both are set or none; absent: cleartext. */
  tlsCert: { name: "LATCHKEY_TLS_CERT", parse: optionalPath },
  tlsKey: { name: "LATCHKEY_TLS_KEY", parse: optionalPath },
  /** The origins whose pages in browsers may call methods that need no root key. */
  corsOrigins: { name: "LATCHKEY_CORS_ORIGINS", parse: origins },
  /** Processes that serve the port. With 1, the main process does everything. */
  workers: { name: "LATCHKEY_WORKERS", fallback: "1", parse: wholeNumberBetween(1, 64) },
  dataDir: { name: "LATCHKEY_DATA_DIR", fallback: "./data", parse: nonEmpty },
  /** Absent: the embedded store. */
  databaseUrl: { name: "DATABASE_URL", secret: true, parse: databaseUrl },
  /** Whether a start on an empty store is refused. Otherwise it creates one. */
  storeMustExist: { name: "LATCHKEY_STORE", fallback: "create", parse: either(["create", "existing"], "existing") },
  /** Where `latchkey copy` copies the embedded store to. */
  copyTo: { name: "LATCHKEY_COPY_TO", secret: true, parse: databaseUrl },
  databaseConnectionsMax: {
    name: "LATCHKEY_DATABASE_CONNECTIONS_MAX",
    fallback: "10",
    parse: wholeNumberBetween(1, 1000),
  },
  usageLanes: { name: "LATCHKEY_USAGE_LANES", fallback: "2", parse: wholeNumberBetween(1, 16) },
  usageTimeoutMs: { name: "LATCHKEY_USAGE_TIMEOUT_MS", fallback: "235", parse: wholeNumberBetween(50, 60_000) },
  /** Absent: this replica is alone. */
  redisUrl: { name: "REDIS_URL", secret: true, parse: redisUrl },
  /** CA certificates for Redis, in PEM, instead of the ones that Node trusts. */
  redisCa: { name: "LATCHKEY_REDIS_CA", secret: true, parse: certificates },
  windowsMax: { name: "LATCHKEY_WINDOWS_MAX", fallback: "1000000", parse: wholeNumberBetween(1, 16_000_000) },
  freeWindowsMax: { name: "LATCHKEY_FREE_WINDOWS_MAX", fallback: "1000000", parse: wholeNumberBetween(1, 16_000_000) },
  /** Addresses of the coordinators of an edge. */
  coordinators: { name: "LATCHKEY_COORDINATORS", parse: addresses },
  rootKeys: { name: "LATCHKEY_ROOT_KEY", secret: true, live: true, parse: rootKeys },
  /** Whether a new root key is generated where the one that was generated is retired. */
  generateRootKey: { name: "LATCHKEY_GENERATE_ROOT_KEY", fallback: "0", parse: either(["0", "1"], "1") },
  /** Whether a verification needs a root key too. */
  verifyAuth: { name: "LATCHKEY_VERIFY_AUTH", fallback: "open", parse: oneOf("open", "required") },
  /** Where callers reach the service, for links in errors; empty: links are relative. */
  publicUrl: { name: "LATCHKEY_PUBLIC_URL", parse: publicUrl },
  /** `implicit`: the first key of an API creates it. `explicit`: only `apis.createApi` does. */
  apis: { name: "LATCHKEY_APIS", fallback: "implicit", parse: oneOf("implicit", "explicit") },
  internalHost: { name: "LATCHKEY_INTERNAL_HOST", fallback: "127.0.0.1", parse: host },
  internalPort: { name: "LATCHKEY_INTERNAL_PORT", fallback: "8081", parse: wholeNumberBetween(0, 65_535) },
  /** Any of them is accepted; edges show the first. Two while one is being replaced. */
  internalSecrets: { name: "LATCHKEY_INTERNAL_SECRET", secret: true, live: true, parse: oneOrTwoSecrets("secret") },
  /** Files of the internal listener's certificate and private key. Both are set or none; absent: cleartext. */
  internalTlsCert: { name: "LATCHKEY_INTERNAL_TLS_CERT", parse: optionalPath },
  internalTlsKey: { name: "LATCHKEY_INTERNAL_TLS_KEY", parse: optionalPath },
  /** The network between edges and coordinators is private: the internal port may be cleartext there. */
  internalPrivate: { name: "LATCHKEY_INTERNAL_PRIVATE", fallback: "0", parse: either(["0", "1"], "1") },
  /** CA certificates for coordinators, in PEM, instead of the ones that Node trusts. */
  internalCa: { name: "LATCHKEY_INTERNAL_CA", secret: true, live: true, parse: certificates },
  /** CA certificates in PEM. Who shows a certificate of theirs on the internal port needs no secret. */
  internalClientCa: { name: "LATCHKEY_INTERNAL_CLIENT_CA", secret: true, live: true, parse: certificates },
  cacheTtlMs: { name: "LATCHKEY_CACHE_TTL_MS", fallback: "60000", parse: wholeNumberBetween(0, 86_400_000) },
  cacheKeysMax: { name: "LATCHKEY_CACHE_KEYS_MAX", fallback: "100000", parse: wholeNumberBetween(1, 10_000_000) },
  /** How many days audit events are kept. 0: for ever. */
  auditDays: { name: "LATCHKEY_AUDIT_DAYS", fallback: "365", live: true, parse: wholeNumberBetween(0, 36_500) },
  /** How many days what counters have spent is kept by the hour, and how many years by the day. */
  spendingDays: { name: "LATCHKEY_SPENDING_DAYS", fallback: "400", live: true, parse: wholeNumberBetween(32, 36_500) },
  spendingYears: { name: "LATCHKEY_SPENDING_YEARS", fallback: "5", live: true, parse: wholeNumberBetween(1, 100) },
  /** Most calls that may wait at the same time, for a look-up, a permit or a commit. */
  callsMax: { name: "LATCHKEY_CALLS_MAX", fallback: "10000", live: true, parse: wholeNumberBetween(1, 1_000_000) },
  /** Most open connections on the public port. */
  connectionsMax: {
    name: "LATCHKEY_CONNECTIONS_MAX",
    fallback: "20000",
    live: true,
    parse: wholeNumberBetween(1, 1_000_000),
  },
  /** Whether the fast path serves verifications where it can. */
  fastPath: { name: "LATCHKEY_FAST_PATH", fallback: "on", parse: either(["on", "off"], "on") },
  drainMs: { name: "LATCHKEY_DRAIN_MS", fallback: "500", live: true, parse: wholeNumberBetween(0, 600_000) },
  logLevel: {
    name: "LATCHKEY_LOG_LEVEL",
    fallback: "info",
    live: true,
    parse: oneOf("debug", "info", "warn", "error"),
  },
  /** `auto`: text to a terminal, else JSON. */
  logFormat: { name: "LATCHKEY_LOG_FORMAT", fallback: "auto", parse: oneOf("auto", "json", "text") },
  /** Which verifications leave a line in the log. */
  logVerifications: {
    name: "LATCHKEY_LOG_VERIFICATIONS",
    fallback: "none",
    live: true,
    parse: oneOf("none", "refused", "all"),
  },
  /** Where traces are sent: the base URL of all signals, or the URL of traces. Both empty: nothing is traced. */
  otlpEndpoint: { name: "OTEL_EXPORTER_OTLP_ENDPOINT", parse: publicUrl },
  otlpTracesEndpoint: { name: "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", parse: publicUrl },
  /** `name=value` pairs that are sent along. */
  otlpHeaders: { name: "OTEL_EXPORTER_OTLP_HEADERS", secret: true, parse: otlpHeaders },
  serviceName: { name: "OTEL_SERVICE_NAME", fallback: "latchkey", parse: nonEmpty },
  /** The share of calls that are traced if their caller has not decided. */
  traceRatio: { name: "OTEL_TRACES_SAMPLER_ARG", fallback: "1", parse: numberBetween(0, 1) },
} as const satisfies { readonly [setting: string]: Variable<unknown> };

/** One value for each variable of the environment. */
export type SettingValues = {
  readonly [Setting in keyof typeof variables]: ReturnType<(typeof variables)[Setting]["parse"]>;
};
