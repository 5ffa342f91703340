import { isLoopback } from "./loopback.ts";
import { readTlsIdentity, TlsFilesError } from "./tls-files.ts";

/** The settings that must fit together. Those that were wrong by themselves are undefined and already reported. */
export interface InternalPortSettings {
  readonly role: string | undefined;
  readonly coordinators: readonly string[] | undefined;
  readonly internalHost: string | undefined;
  readonly internalTlsCert: string | undefined;
  readonly internalTlsKey: string | undefined;
  readonly internalPrivate: boolean | undefined;
  readonly internalCa: string | undefined;
}

/**
 * What is wrong with the settings of the internal port and of the way to it. Beyond loopback it needs a secret, and
 * TLS or a network that is said to be private.
 */
export function internalPortProblems(
  settings: InternalPortSettings,
  hasSecret: boolean,
  readFile: (path: string) => string,
): readonly string[] {
  return [...listenerProblems(settings, hasSecret), ...tlsProblems(settings, readFile), ...edgeProblems(settings)];
}

function listenerProblems(settings: InternalPortSettings, hasSecret: boolean): readonly string[] {
  const { internalHost, internalTlsCert, internalTlsKey, internalPrivate } = settings;
  if (internalHost === undefined || isLoopback(internalHost)) return [];
  const problems: string[] = [];
  if (!hasSecret) {
    problems.push(
      "LATCHKEY_INTERNAL_HOST must be a loopback address unless LATCHKEY_INTERNAL_SECRET is set: " +
        "the internal listener would be open to everybody",
    );
  }
  if (internalTlsCert === undefined && internalTlsKey === undefined && internalPrivate === false) {
    problems.push(
      "LATCHKEY_INTERNAL_HOST must be a loopback address unless the internal port speaks TLS " +
        "(set LATCHKEY_INTERNAL_TLS_CERT and LATCHKEY_INTERNAL_TLS_KEY) or its network is private " +
        "(set LATCHKEY_INTERNAL_PRIVATE=1): the shared secret would be sent in cleartext",
    );
  }
  return problems;
}

function tlsProblems(settings: InternalPortSettings, readFile: (path: string) => string): readonly string[] {
  const { internalTlsCert: certFile, internalTlsKey: keyFile } = settings;
  if (certFile === undefined && keyFile === undefined) return [];
  if (certFile === undefined || keyFile === undefined) {
    return ["LATCHKEY_INTERNAL_TLS_CERT and LATCHKEY_INTERNAL_TLS_KEY must be set together: only one of them is set"];
  }
  try {
    readTlsIdentity({ certFile, keyFile }, readFile);
    return [];
  } catch (error) {
    if (error instanceof TlsFilesError) return error.problems;
    throw error;
  }
}

function edgeProblems({ role, coordinators, internalPrivate, internalCa }: InternalPortSettings): readonly string[] {
  if (coordinators === undefined) return [];
  const problems: string[] = [];
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
