import { isLoopback } from "./loopback.ts";

/** The settings that must fit together. Those that were wrong by themselves are undefined and already reported. */
export interface InternalPortSettings {
  readonly role: string | undefined;
  readonly coordinators: readonly string[] | undefined;
  readonly internalHost: string | undefined;
  readonly internalTlsCert: string | undefined;
  readonly internalTlsKey: string | undefined;
  readonly internalPrivate: boolean | undefined;
  readonly internalCa: string | undefined;
  readonly internalClientCa: string | undefined;
}

/**
 * What is wrong with the settings of the internal port and of the way to it. Beyond loopback it needs a secret or client
 * certificates, and TLS or a network that is said to be private.
 */
export function internalPortProblems(settings: InternalPortSettings, hasSecret: boolean): readonly string[] {
  return [
    ...listenerProblems(settings, hasSecret),
    ...proofProblems(settings, hasSecret),
    ...edgeProblems(settings, hasSecret),
  ];
}

function listenerProblems(settings: InternalPortSettings, hasSecret: boolean): readonly string[] {
  const { internalHost, internalPrivate, internalClientCa } = settings;
  const problems: string[] = [];
  if (internalClientCa !== undefined && !hasCertificate(settings)) {
    problems.push(
      "LATCHKEY_INTERNAL_CLIENT_CA must not be set unless the internal port speaks TLS " +
        "(set LATCHKEY_INTERNAL_TLS_CERT and LATCHKEY_INTERNAL_TLS_KEY): nobody could show a certificate",
    );
  }
  if (internalHost === undefined || isLoopback(internalHost)) return problems;
  if (!hasSecret && internalClientCa === undefined) {
    problems.push(
      "LATCHKEY_INTERNAL_HOST must be a loopback address unless LATCHKEY_INTERNAL_SECRET or LATCHKEY_INTERNAL_CLIENT_CA " +
        "is set: the internal listener would be open to everybody",
    );
  }
  if (!hasCertificate(settings) && internalPrivate === false) {
    problems.push(
      "LATCHKEY_INTERNAL_HOST must be a loopback address unless the internal port speaks TLS " +
        "(set LATCHKEY_INTERNAL_TLS_CERT and LATCHKEY_INTERNAL_TLS_KEY) or its network is private " +
        "(set LATCHKEY_INTERNAL_PRIVATE=1): the shared secret would be sent in cleartext",
    );
  }
  return problems;
}

/** Edges prove themselves to coordinators, by the secret or by a certificate. */
function proofProblems(settings: InternalPortSettings, hasSecret: boolean): readonly string[] {
  if (hasSecret) return [];
  if (settings.role === "coordinator" && settings.internalClientCa === undefined) {
    return [
      "LATCHKEY_INTERNAL_SECRET or LATCHKEY_INTERNAL_CLIENT_CA must be set where the role is coordinator: " +
        "edges show the secret, or a certificate of that CA",
    ];
  }
  if (settings.role === "edge" && !hasCertificate(settings)) {
    return [
      "LATCHKEY_INTERNAL_SECRET or LATCHKEY_INTERNAL_TLS_CERT must be set where the role is edge: " +
        "it shows one of them to coordinators",
    ];
  }
  return [];
}

function hasCertificate({ internalTlsCert, internalTlsKey }: InternalPortSettings): boolean {
  return internalTlsCert !== undefined || internalTlsKey !== undefined;
}

function edgeProblems(settings: InternalPortSettings, hasSecret: boolean): readonly string[] {
  const { role, coordinators, internalPrivate, internalCa } = settings;
  if (coordinators === undefined) return [];
  const problems: string[] = [];
  const isCleartext = (address: string) => !address.startsWith("https://");
  if (role === "edge" && !hasSecret && hasCertificate(settings) && coordinators.some(isCleartext)) {
    problems.push(
      "LATCHKEY_COORDINATORS must have https:// in front of each unless LATCHKEY_INTERNAL_SECRET is set: " +
        "a certificate can be shown over TLS only",
    );
  }
  if (role === "edge" && internalPrivate === false && coordinators.some(isCleartextElsewhere)) {
    problems.push(
      "LATCHKEY_COORDINATORS must have https:// in front of coordinators on other machines unless their network is " +
        "private (set LATCHKEY_INTERNAL_PRIVATE=1): the shared secret would be sent in cleartext",
    );
  }
  if (internalCa !== undefined && !coordinators.some((address) => address.startsWith("https://"))) {
    problems.push(
      "LATCHKEY_INTERNAL_CA must not be set unless LATCHKEY_COORDINATORS has an address with https:// in front: " +
        "there would be no certificate to check",
    );
  }
  return problems;
}

function isCleartextElsewhere(address: string): boolean {
  if (address.startsWith("https://")) return false;
  const { host = "" } = /^(?:http:\/\/)?\[?(?<host>.*?)\]?:\d+$/.exec(address)?.groups ?? {};
  return !isLoopback(host);
}
