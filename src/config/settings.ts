import type { Secret } from "../domain/secret.ts";
import { internalPortProblems } from "./internal-port-problems.ts";
import {
  addresses,
  certificates,
  databaseUrl,
  nonEmpty,
  numberBetween,
  oneOf,
  onOrOff,
  optionalPath,
  optionalSecret,
  otlpHeaders,
  publicUrl,
  redisUrl,
  rootKeys,
  wholeNumber,
  zeroOrOne,
} from "./parse-setting.ts";

export type Role = "all" | "edge" | "coordinator";
export type LogLevel = "debug" | "info" | "warn" | "error";

/** All settings from the environment, parsed once. */
export interface Settings {
  /** `all`: everything. `edge`: serves verifications, and reaches the data over coordinators. `coordinator`: only that. */
  readonly role: Role;
  readonly host: string;
  readonly port: number;
  /** Threads that serve the port. With 1, the main thread does everything. */
  readonly workers: number;
  readonly dataDir: string;
  /** Absent: the embedded store. */
  readonly databaseUrl: Secret | undefined;
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
  /** Whether a verification needs a root key too. */
  readonly verifyAuth: "open" | "required";
  /** Where callers reach the service, for links in errors; empty: links are relative. */
  readonly publicUrl: string;
  /** `implicit`: the first key of an API creates it. `explicit`: only `apis.createApi` does. */
  readonly apis: "implicit" | "explicit";
  readonly internalHost: string;
  readonly internalPort: number;
  readonly internalSecret: Secret | undefined;
  /** Files of the internal listener's certificate and private key. Both are set or none; absent: cleartext. */
  readonly internalTlsCert: string | undefined;
  readonly internalTlsKey: string | undefined;
  /** The network between edges and coordinators is private: the internal port may be cleartext there. */
  readonly internalPrivate: boolean;
  /** CA certificates for coordinators, in PEM, instead of the ones that Node trusts. */
  readonly internalCa: string | undefined;
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
interface Variable<Value> {
  readonly name: string;
  readonly fallback: string;
  /** Whether the value may come from a file named by `<name>_FILE` instead of the environment. */
  readonly secret?: true;
  /** Throws an Error whose message completes "<NAME> …". It must not repeat the value of a secret. */
  readonly parse: (text: string) => Value;
}

export const variables: { readonly [Setting in keyof Settings]: Variable<Settings[Setting]> } = {
  role: { name: "LATCHKEY_ROLE", fallback: "all", parse: oneOf("all", "edge", "coordinator") },
  host: { name: "HOST", fallback: "127.0.0.1", parse: nonEmpty },
  port: { name: "PORT", fallback: "8080", parse: wholeNumber(0, 65_535) },
  workers: { name: "LATCHKEY_WORKERS", fallback: "1", parse: wholeNumber(1, 64) },
  dataDir: { name: "LATCHKEY_DATA_DIR", fallback: "./data", parse: nonEmpty },
  databaseUrl: { name: "DATABASE_URL", fallback: "", secret: true, parse: databaseUrl },
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
  rootKeys: { name: "LATCHKEY_ROOT_KEY", fallback: "", secret: true, parse: rootKeys },
  verifyAuth: { name: "LATCHKEY_VERIFY_AUTH", fallback: "open", parse: oneOf("open", "required") },
  publicUrl: { name: "LATCHKEY_PUBLIC_URL", fallback: "", parse: publicUrl },
  apis: { name: "LATCHKEY_APIS", fallback: "implicit", parse: oneOf("implicit", "explicit") },
  internalHost: { name: "LATCHKEY_INTERNAL_HOST", fallback: "127.0.0.1", parse: nonEmpty },
  internalPort: { name: "LATCHKEY_INTERNAL_PORT", fallback: "8081", parse: wholeNumber(0, 65_535) },
  internalSecret: { name: "LATCHKEY_INTERNAL_SECRET", fallback: "", secret: true, parse: optionalSecret },
  internalTlsCert: { name: "LATCHKEY_INTERNAL_TLS_CERT", fallback: "", parse: optionalPath },
  internalTlsKey: { name: "LATCHKEY_INTERNAL_TLS_KEY", fallback: "", parse: optionalPath },
  internalPrivate: { name: "LATCHKEY_INTERNAL_PRIVATE", fallback: "0", parse: zeroOrOne },
  internalCa: { name: "LATCHKEY_INTERNAL_CA", fallback: "", secret: true, parse: certificates("LATCHKEY_INTERNAL_CA") },
  cacheTtlMs: { name: "LATCHKEY_CACHE_TTL_MS", fallback: "60000", parse: wholeNumber(0, 86_400_000) },
  cacheKeysMax: { name: "LATCHKEY_CACHE_KEYS_MAX", fallback: "100000", parse: wholeNumber(1, 10_000_000) },
  auditDays: { name: "LATCHKEY_AUDIT_DAYS", fallback: "365", parse: wholeNumber(0, 36_500) },
  callsMax: { name: "LATCHKEY_CALLS_MAX", fallback: "10000", parse: wholeNumber(1, 1_000_000) },
  connectionsMax: { name: "LATCHKEY_CONNECTIONS_MAX", fallback: "20000", parse: wholeNumber(1, 1_000_000) },
  fastPath: { name: "LATCHKEY_FAST_PATH", fallback: "on", parse: onOrOff },
  drainMs: { name: "LATCHKEY_DRAIN_MS", fallback: "500", parse: wholeNumber(0, 600_000) },
  logLevel: { name: "LATCHKEY_LOG_LEVEL", fallback: "info", parse: oneOf("debug", "info", "warn", "error") },
  logFormat: { name: "LATCHKEY_LOG_FORMAT", fallback: "auto", parse: oneOf("auto", "json", "text") },
  logVerifications: {
    name: "LATCHKEY_LOG_VERIFICATIONS",
    fallback: "none",
    parse: oneOf("none", "refused", "all"),
  },
  otlpEndpoint: { name: "OTEL_EXPORTER_OTLP_ENDPOINT", fallback: "", parse: publicUrl },
  otlpTracesEndpoint: { name: "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", fallback: "", parse: publicUrl },
  otlpHeaders: { name: "OTEL_EXPORTER_OTLP_HEADERS", fallback: "", secret: true, parse: otlpHeaders },
  serviceName: { name: "OTEL_SERVICE_NAME", fallback: "latchkey", parse: nonEmpty },
  traceRatio: { name: "OTEL_TRACES_SAMPLER_ARG", fallback: "1", parse: numberBetween(0, 1) },
};

/** Everything that is wrong with the settings. */
export class SettingsError extends Error {
  override readonly name = "SettingsError";
  readonly problems: readonly string[];
  /** The data folder, if it is used and its own setting was valid: the folder may have another problem. */
  readonly dataDir: string | undefined;

  constructor(problems: readonly string[], dataDir: string | undefined) {
    super(problems.join("\n"));
    this.problems = problems;
    this.dataDir = dataDir;
  }
}

export type Environment = Readonly<Record<string, string | undefined>>;

/** The settings that differ from their defaults, by the names that operators know. Of secrets only that they are set. */
export function describeSettings(environment: Environment): Record<string, string> {
  const described = Object.values(variables).map((variable: Variable<unknown>): [string, string] => {
    const { name, fallback, secret } = variable;
    if (!secret) return [name, environment[name] === fallback ? "" : (environment[name] ?? "")];
    return [name, environment[`${name}_FILE`] ? "set, by a file" : isSet(variable, environment) ? "set" : ""];
  });
  return Object.fromEntries(described.filter(([, text]) => text !== ""));
}

/** Throws `SettingsError`. `warnings` are about settings that are unusual but harmless. */
export function readSettings(
  environment: Environment,
  readFile: (path: string) => string,
): { settings: Settings; warnings: readonly string[] } {
  const problems: string[] = [];
  const parsed = Object.entries(variables).map(([setting, variable]) => {
    try {
      return [setting, (variable as Variable<unknown>).parse(textOf(variable, environment, readFile))];
    } catch (error) {
      problems.push(`${variable.name} ${(error as Error).message}`);
      return [setting, undefined];
    }
  });
  const settings = Object.freeze(Object.fromEntries(parsed)) as Settings;
  problems.push(...internalPortProblems(settings, isSet(variables.internalSecret, environment), readFile));
  // A wrong URL has already been reported.
  const redisUrlIsRight = settings.redisUrl !== undefined || !isSet(variables.redisUrl, environment);
  if (settings.redisCa !== undefined && redisUrlIsRight && !settings.redisUrl?.reveal().startsWith("rediss")) {
    problems.push("LATCHKEY_REDIS_CA must not be set unless REDIS_URL begins with rediss: nothing would be encrypted");
  }
  const hasDatabase = isSet(variables.databaseUrl, environment);
  const hasRootKeys = isSet(variables.rootKeys, environment);
  const hasSecret = isSet(variables.internalSecret, environment);
  problems.push(...roleProblems(settings, { hasDatabase, hasRootKeys, hasSecret }));
  const usesFolder = !hasDatabase && settings.role !== "edge";
  if (problems.length > 0) throw new SettingsError(problems, usesFolder ? settings.dataDir : undefined);
  return { settings, warnings: unknownNames(environment).map((name) => `${name} is not a setting of Latchkey`) };
}

/** Settings that contradict each other. Those that were wrong by themselves are undefined and already reported. */
function roleProblems(
  { role, coordinators, workers, apis }: Settings,
  {
    hasDatabase,
    hasRootKeys,
    hasSecret,
  }: { readonly hasDatabase: boolean; readonly hasRootKeys: boolean; readonly hasSecret: boolean },
): string[] {
  const problems: string[] = [];
  if (role === "edge" && coordinators?.length === 0) {
    problems.push("LATCHKEY_COORDINATORS must name at least one coordinator where the role is edge");
  }
  if (role !== undefined && role !== "edge" && coordinators !== undefined && coordinators.length > 0) {
    problems.push("LATCHKEY_COORDINATORS must not be set unless the role is edge: others go to the ledger themselves");
  }
  if (role === "coordinator" && !hasDatabase) {
    problems.push("DATABASE_URL must be set where the role is coordinator: the embedded store serves one process");
  }
  if (role === "edge" && hasDatabase) {
    problems.push("DATABASE_URL must not be set where the role is edge: only its coordinators reach the database");
  }
  if (role === "edge" && hasRootKeys) {
    problems.push("LATCHKEY_ROOT_KEY must not be set where the role is edge: its coordinators check root keys");
  }
  if (role === "edge" && apis === "explicit") {
    problems.push("LATCHKEY_APIS must not be set where the role is edge: set it where its coordinators are");
  }
  if ((role === "edge" || role === "coordinator") && !hasSecret) {
    problems.push(`LATCHKEY_INTERNAL_SECRET must be set where the role is ${role}: edges show it to coordinators`);
  }
  if (role === "coordinator" && workers > 1) {
    problems.push("LATCHKEY_WORKERS must be 1 where the role is coordinator: it serves no keys");
  }
  return problems;
}

function textOf(variable: Variable<unknown>, environment: Environment, readFile: (path: string) => string): string {
  const text = environment[variable.name];
  const path = variable.secret && environment[`${variable.name}_FILE`];
  if (!path) return text || variable.fallback;
  if (text) throw new Error(`and ${variable.name}_FILE are both set: set one of them`);
  let content: string;
  try {
    content = readFile(path).trim();
  } catch (error) {
    throw new Error(`cannot be read from ${variable.name}_FILE: ${(error as NodeJS.ErrnoException).code ?? "error"}`);
  }
  // An empty secret is an error: starting without one would go unnoticed.
  if (content === "") throw new Error(`cannot be read from ${variable.name}_FILE: the file is empty`);
  return content;
}

function isSet({ name }: Variable<unknown>, environment: Environment): boolean {
  return Boolean(environment[name] || environment[`${name}_FILE`]);
}

function unknownNames(environment: Environment): string[] {
  const known = new Set(
    Object.values(variables).flatMap(({ name, secret }) => (secret ? [name, `${name}_FILE`] : [name])),
  );
  return Object.keys(environment).filter((name) => name.startsWith("LATCHKEY_") && !known.has(name));
}
