import { isIPv4 } from "node:net";
import { isLoopback } from "./hosts.ts";
import type { SettingValues } from "./variables.ts";

/** Settings that were wrong by themselves are undefined and already reported. */
type ValidValues = { readonly [Setting in keyof SettingValues]: SettingValues[Setting] | undefined };

/** Whether a setting is set, even if its value is wrong. */
type IsSet = (setting: "databaseUrl" | "rootKeys" | "internalSecrets" | "redisUrl") => boolean;

/** What is wrong with settings that contradict each other, in sentences. */
export function conflictsOf(values: ValidValues, isSet: IsSet): readonly string[] {
  const { role, coordinators = [], workers = 1, apis, storeMustExist, redisUrl, redisCa } = values;
  const isEdge = role === "edge";
  const isCoordinator = role === "coordinator";
  const isRedisUrlWrong = redisUrl === undefined && isSet("redisUrl");
  return [
    ...internalPortConflicts(values, isSet("internalSecrets")),
    ...portConflicts(values),
    ...sentencesThatHold({
      "LATCHKEY_REDIS_CA must not be set unless REDIS_URL begins with rediss: nothing would be encrypted":
        redisCa !== undefined && !isRedisUrlWrong && !redisUrl?.reveal().startsWith("rediss"),
      "LATCHKEY_COORDINATORS must name at least one coordinator where the role is edge":
        isEdge && values.coordinators?.length === 0,
      "LATCHKEY_COORDINATORS must not be set unless the role is edge: others go to the ledger themselves":
        role !== undefined && !isEdge && coordinators.length > 0,
      "DATABASE_URL must be set where the role is coordinator: the embedded store serves one process":
        isCoordinator && !isSet("databaseUrl"),
      "DATABASE_URL must not be set where the role is edge: only its coordinators reach the database":
        isEdge && isSet("databaseUrl"),
      "LATCHKEY_ROOT_KEY must not be set where the role is edge: its coordinators check root keys":
        isEdge && isSet("rootKeys"),
      "LATCHKEY_APIS must not be set where the role is edge: set it where its coordinators are":
        isEdge && apis === "explicit",
      "LATCHKEY_STORE must not be set where the role is edge: set it where its coordinators are":
        isEdge && storeMustExist === true,
      "LATCHKEY_WORKERS must be 1 where the role is coordinator: it serves no keys": isCoordinator && workers > 1,
    }),
  ];
}

/**
 * What is wrong with the settings of the internal port and of the way to it. Beyond loopback it needs a secret or client
 * certificates, and TLS or a network that is said to be private.
 */
export function internalPortConflicts(values: ValidValues, hasSecret: boolean): readonly string[] {
  const { role, internalHost, internalPrivate, internalClientCa, internalCa, coordinators } = values;
  const isEdge = role === "edge";
  const isReachable = internalHost !== undefined && !isLoopback(internalHost);
  const hasCertificate = values.internalTlsCert !== undefined || values.internalTlsKey !== undefined;
  const isCleartext = (address: string) => !address.startsWith("https://");
  return sentencesThatHold({
    "LATCHKEY_INTERNAL_CLIENT_CA must not be set unless the internal port speaks TLS (set LATCHKEY_INTERNAL_TLS_CERT and LATCHKEY_INTERNAL_TLS_KEY): nobody could show a certificate":
      internalClientCa !== undefined && !hasCertificate,
    "LATCHKEY_INTERNAL_HOST must be a loopback address unless LATCHKEY_INTERNAL_SECRET or LATCHKEY_INTERNAL_CLIENT_CA is set: the internal listener would be open to everybody":
      isReachable && !hasSecret && internalClientCa === undefined,
    "LATCHKEY_INTERNAL_HOST must be a loopback address unless the internal port speaks TLS (set LATCHKEY_INTERNAL_TLS_CERT and LATCHKEY_INTERNAL_TLS_KEY) or its network is private (set LATCHKEY_INTERNAL_PRIVATE=1): the shared secret would be sent in cleartext":
      isReachable && !hasCertificate && internalPrivate === false,
    // Edges prove themselves to coordinators, by the secret or by a certificate.
    "LATCHKEY_INTERNAL_SECRET or LATCHKEY_INTERNAL_CLIENT_CA must be set where the role is coordinator: edges show the secret, or a certificate of that CA":
      !hasSecret && role === "coordinator" && internalClientCa === undefined,
    "LATCHKEY_INTERNAL_SECRET or LATCHKEY_INTERNAL_TLS_CERT must be set where the role is edge: it shows one of them to coordinators":
      !hasSecret && isEdge && !hasCertificate,
    "LATCHKEY_COORDINATORS must have https:// in front of each unless LATCHKEY_INTERNAL_SECRET is set: a certificate can be shown over TLS only":
      isEdge && !hasSecret && hasCertificate && coordinators?.some(isCleartext),
    "LATCHKEY_COORDINATORS must have https:// in front of coordinators on other machines unless their network is private (set LATCHKEY_INTERNAL_PRIVATE=1): the shared secret would be sent in cleartext":
      isEdge && internalPrivate === false && coordinators?.some(isCleartextElsewhere),
    "LATCHKEY_INTERNAL_CA must not be set unless LATCHKEY_COORDINATORS has an address with https:// in front: there would be no certificate to check":
      internalCa !== undefined && coordinators?.every(isCleartext),
  });
}

function sentencesThatHold(conflicts: Readonly<Record<string, boolean | undefined>>): readonly string[] {
  return Object.keys(conflicts).filter((sentence) => conflicts[sentence]);
}

function isCleartextElsewhere(address: string): boolean {
  if (address.startsWith("https://")) return false;
  const { host = "" } = /^(?:http:\/\/)?\[?(?<host>.*?)\]?:\d+$/.exec(address)?.groups ?? {};
  return !isLoopback(host);
}

/** Both listeners on one port of one address: the second would find it taken. Two names may mean different addresses. */
function portConflicts({ host, port, internalHost, internalPort }: ValidValues): readonly string[] {
  if (host === undefined || internalHost === undefined || !port || port !== internalPort) return [];
  const shared = includes(host, internalHost) ? internalHost : includes(internalHost, host) ? host : undefined;
  return shared ? [`PORT must differ from LATCHKEY_INTERNAL_PORT: both would listen on ${shared}`] : [];
}

/** Whether a listener on the one address takes the other too. :: takes the addresses of IPv4 as well. */
function includes(host: string, other: string): boolean {
  if (host === "0.0.0.0") return isIPv4(other);
  return host === "::" || host.toLowerCase() === other.toLowerCase();
}
