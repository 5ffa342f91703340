import { Secret } from "./secret.ts";
import { requireEncodedLogin } from "./url-login.ts";

export interface RedisAddress {
  readonly host: string;
  readonly port: number;
}

/** The content of REDIS_URL: one server, a Redis Cluster, or a master found through Sentinels. */
export interface RedisServers {
  readonly kind: "single" | "cluster" | "sentinel";
  /** The server; some nodes of the cluster; or the Sentinels. At least one. */
  readonly addresses: readonly RedisAddress[];
  readonly isTls: boolean;
  readonly user: string | undefined;
  readonly password: Secret | undefined;
  /** For the Sentinels themselves, if they require a login. */
  readonly sentinelUser: string | undefined;
  readonly sentinelPassword: Secret | undefined;
  /** The master's name at the Sentinels; empty without Sentinels. */
  readonly masterName: string;
  readonly database: number;
}

const example =
  "redis://user:password@host:6379, redis+cluster://host:6379,host:6379 or " +
  "redis+sentinel://host:26379,host:26379/master-name; rediss in place of redis for TLS";

const urlForm =
  /^(?<scheme>rediss?)(?:\+(?<kind>cluster|sentinel))?:\/\/(?:(?<login>[^\s/?#]*)@)?(?<hosts>[^\s/?#@]+)(?<path>\/[^\s?#]*)?(?:\?(?<query>[^\s#]*))?$/;
const hostForm = /^(?<host>\[[0-9a-fA-F:.]+\]|[\w.-]+)(?::(?<port>\d{1,5}))?$/;

/** Throws an Error whose message completes "REDIS_URL …" and repeats nothing of the text. */
export function parseRedisUrl(text: string): RedisServers {
  requireEncodedLogin(text);
  const { scheme, kind = "single", login, hosts = "", path = "", query } = urlForm.exec(text)?.groups ?? {};
  if (scheme === undefined) throw new Error(`must be a URL such as ${example}`);
  const addresses = hosts.split(",").map((host) => parseAddress(host, kind === "sentinel" ? 26_379 : 6379));
  if (kind === "single" && addresses.length > 1) {
    throw new Error("must name one server, unless it begins with redis+cluster:// or redis+sentinel://");
  }
  const segments = path.split("/").slice(1);
  const masterName = kind === "sentinel" ? decode(segments.shift() ?? "") : "";
  if (kind === "sentinel" && masterName === "") throw new Error("must end in the name of the master: /master-name");
  const database = parseDatabase(segments);
  if (kind === "cluster" && database !== 0) throw new Error("must name no database: a cluster has one only");
  const options = parseOptions(query);
  if (kind !== "sentinel" && options.size > 0) throw new Error("must have no options after a question mark");
  return {
    kind: kind as RedisServers["kind"],
    addresses,
    isTls: scheme === "rediss",
    ...parseLogin(login),
    sentinelUser: options.get("sentinelUser"),
    sentinelPassword: secretOf(options.get("sentinelPassword")),
    masterName,
    database,
  };
}

function parseAddress(text: string, portDefault: number): RedisAddress {
  const { host, port } = hostForm.exec(text)?.groups ?? {};
  const number = port === undefined ? portDefault : Number(port);
  if (host === undefined || number < 1 || number > 65_535) {
    throw new Error("must name hosts as host:port, with ports from 1 to 65535");
  }
  return { host: host.replace(/^\[|\]$/g, ""), port: number };
}

/** The part before the @. A colon in a password needs no escape; every other character with a meaning in URLs does. */
function parseLogin(login: string | undefined): { user: string | undefined; password: Secret | undefined } {
  if (login === undefined) return { user: undefined, password: undefined };
  const colon = login.indexOf(":");
  if (colon < 0) throw new Error("must hold user:password or :password before the @");
  const user = decode(login.slice(0, colon));
  return { user: user === "" ? undefined : user, password: secretOf(decode(login.slice(colon + 1))) };
}

function parseDatabase([text = "", ...rest]: readonly string[]): number {
  if (!/^\d{0,4}$/.test(text) || rest.some((segment) => segment !== "")) {
    throw new Error("must end in the number of a database, or in nothing, after the host");
  }
  return Number(text);
}

function parseOptions(query: string | undefined): ReadonlyMap<string, string> {
  const options = new Map<string, string>();
  for (const part of query ? query.split("&") : []) {
    const equals = part.indexOf("=");
    const name = part.slice(0, Math.max(equals, 0));
    if (name !== "sentinelUser" && name !== "sentinelPassword") {
      throw new Error("must have no options but sentinelUser and sentinelPassword");
    }
    options.set(name, decode(part.slice(equals + 1)));
  }
  return options;
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new Error("must have a % as %25");
  }
}

function secretOf(text: string | undefined): Secret | undefined {
  return text ? new Secret(text) : undefined;
}
