import { isUntrustedCertificate } from "../../domain/untrusted-certificate.ts";
import type { FieldViolation, LatchkeyError } from "../../sdk/errors.ts";
import { CommandError, exitCodes } from "./command-error.ts";
import type { Connection } from "./connection.ts";
import { flagOf, withFlagNames } from "./flags.ts";
import type { CliCommand } from "./groups.ts";
import { printable } from "./screen.ts";

/**
 * Says why a call failed, in the words of the command line. Of a list that is sent in pieces, `sentBefore` is how many
 * elements were in the pieces before.
 */
export function explainFailure(
  error: LatchkeyError,
  command: CliCommand,
  { url, aboutRootKey }: Connection,
  sentBefore: number,
): CommandError {
  const { code, violations, requestId } = error;
  const network = code === "NETWORK_ERROR" ? explainNetworkError(error, url) : undefined;
  const problems = violations.map((violation) => describeViolation(violation, command, sentBefore));
  const message =
    network?.message ?? (problems.length === 0 ? withFlags(error.message, command) : problems.join("\n  "));
  const lines = [`${code}: ${message}`, ...(network?.hint === undefined ? [] : [network.hint])];
  // The service counts wrong root keys only: another one is needed, and waiting is useless.
  const isRootKey = code === "UNAUTHORIZED" || code === "TOO_MANY_REQUESTS";
  if (isRootKey) lines.push(aboutRootKey);
  if (requestId !== undefined) lines.push(`request ${requestId}`);
  const isPassing = error.retryable && !isRootKey && network?.isLasting !== true;
  const text = lines.flatMap((line) => line.split("\n")).map(printable);
  return new CommandError(text.join("\n"), isPassing ? exitCodes.unavailable : exitCodes.refused);
}

/** With the flag of a field in place of its path, and the number of an element counted from 1. */
function describeViolation({ path, message }: FieldViolation, command: CliCommand, sentBefore: number): string {
  const [, list, index, inner] = /^(\w+)\[(\d+)\]\.?(.*)$/.exec(path) ?? [];
  const number = Number(index) + 1;
  if (path === "") return `the request ${withFlags(message, command)}`;
  if (list === undefined) return `${flagOf(path, command) ?? path}: ${withFlags(message, command)}`;
  if (list === command.batch?.field) return `number ${sentBefore + number}: ${inner ? `${inner}: ` : ""}${message}`;
  const flag = flagOf(inner ? `${list}.${inner}` : list, command) ?? path;
  return `${flag} (number ${number}): ${withFlags(message, command)}`;
}

/** The service names fields as they are in JSON. A name that is an ordinary word too counts only in what it asks to send. */
function withFlags(message: string, command: CliCommand): string {
  const flagFor = (name: string) => flagOf(name, command) ?? name;
  const given = message.replace(
    /\bsend (at least one of )?(\w+(?:, \w+)*)$/,
    (words, many: string | undefined, names) => {
      const flags = (names as string).split(", ").map(flagFor);
      return flags.every((flag) => flag.startsWith("--")) ? `give ${many ?? ""}${flags.join(", ")}` : words;
    },
  );
  return withFlagNames(given, command);
}

const untrusted =
  "its certificate is of an authority that Node does not trust: NODE_EXTRA_CA_CERTS=/path/ca.pem adds one";
const noTls = "the service speaks http, not https, there";

/** Problems of TLS, none of which goes away by itself. Other codes of certificates that are refused: `untrusted`. */
const tlsHints: Readonly<Record<string, string>> = {
  CERT_HAS_EXPIRED: "its certificate has expired",
  CERT_NOT_YET_VALID: "its certificate is not valid yet: is the clock of this machine right?",
  ERR_TLS_CERT_ALTNAME_INVALID: "its certificate is for another name than the one in this address",
  ERR_SSL_WRONG_VERSION_NUMBER: noTls,
  ERR_SSL_PACKET_LENGTH_TOO_LONG: noTls,
};

function explainNetworkError({ cause }: LatchkeyError, url: string) {
  const { code } = (cause as { cause?: { code?: string } } | undefined)?.cause ?? {};
  const message = `the service could not be reached at ${url}${code === undefined ? "" : ` (${code})`}`;
  const tlsHint = tlsHints[code ?? ""] ?? (isUntrustedCertificate(code ?? "") ? untrusted : undefined);
  // A lasting one stays until somebody changes something: trying again is useless.
  return { message, hint: tlsHint ?? hintFor(code, url), isLasting: tlsHint !== undefined };
}

const otherAddress = "--url, LATCHKEY_URL or a profile names another address";

function hintFor(code: string | undefined, url: string): string | undefined {
  if (code === "ECONNREFUSED") return `nothing listens there: is the service running (latchkey serve)? ${otherAddress}`;
  if (code === "ENOTFOUND") return "there is no host of that name";
  const isClosed = code === "ECONNRESET" || code === "UND_ERR_SOCKET";
  return isClosed && url.startsWith("http:") ? "it closed the connection: maybe it speaks https there" : undefined;
}
