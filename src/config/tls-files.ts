import { createPrivateKey, X509Certificate } from "node:crypto";
import { createSecureContext } from "node:tls";
import { Secret } from "../domain/secret.ts";
import { variables } from "./variables.ts";

/** The ports that can speak TLS, each with its settings: the address, the two files, and what is read from them. */
export const tlsPorts = {
  public: { host: "host", cert: "tlsCert", key: "tlsKey", identity: "tls" },
  internal: { host: "internalHost", cert: "internalTlsCert", key: "internalTlsKey", identity: "internalTls" },
} as const;

export type TlsPort = keyof typeof tlsPorts;

/** The variables that name the two files of a port, for the sentences about them. */
export function tlsVariablesOf(port: TlsPort): readonly [cert: string, key: string] {
  const { cert, key } = tlsPorts[port];
  return [variables[cert].name, variables[key].name];
}

export interface TlsFiles {
  readonly port: TlsPort;
  /** Undefined: not set. */
  readonly certFile: string | undefined;
  readonly keyFile: string | undefined;
}

/** What a server proves itself by. */
export interface TlsIdentity {
  /** The certificate and those that vouch for it, in PEM. */
  readonly certPem: string;
  readonly keyPem: Secret;
  readonly certificate: X509Certificate;
}

/** Everything that is wrong with the two files. The sentences repeat nothing of what the files hold. */
export class TlsFilesError extends Error {
  override readonly name = "TlsFilesError";
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(problems.join("; "));
    this.problems = problems;
  }
}

/**
 * Makes sure that both can be used together. Throws `TlsFilesError`. A certificate that has expired is not an error.
 * Undefined: neither is set.
 */
export function readTlsIdentity(
  { port, certFile, keyFile }: TlsFiles,
  readFile: (path: string) => string,
): TlsIdentity | undefined {
  const [certName, keyName] = tlsVariablesOf(port);
  if (certFile === undefined && keyFile === undefined) return undefined;
  if (certFile === undefined || keyFile === undefined) {
    throw new TlsFilesError([`${certName} and ${keyName} must be set together: only one of them is set`]);
  }
  const problems: string[] = [];
  const attempt = <Value>(name: string, path: string, parse: (pem: string) => Value, otherwise: string) => {
    let pem: string;
    try {
      pem = readFile(path);
    } catch (error) {
      problems.push(`${name} names a file that cannot be read: ${(error as NodeJS.ErrnoException).code ?? "error"}`);
      return undefined;
    }
    try {
      return { pem, value: parse(pem) };
    } catch {
      problems.push(`${name} ${otherwise}`);
      return undefined;
    }
  };
  const cert = attempt(certName, certFile, parseCertificate, "must name a file with a certificate in PEM form");
  const noKey = "must name a file with a private key in PEM form, without a passphrase";
  const key = attempt(keyName, keyFile, (pem) => createPrivateKey(pem), noKey);
  if (cert === undefined || key === undefined) throw new TlsFilesError(problems);
  if (!cert.value.checkPrivateKey(key.value)) {
    throw new TlsFilesError([`${keyName} must name the private key of the certificate in ${certName}: it is another`]);
  }
  try {
    createSecureContext({ cert: cert.pem, key: key.pem });
  } catch (error) {
    const { code = "error" } = error as NodeJS.ErrnoException;
    throw new TlsFilesError([`${certName} and ${keyName} cannot be used for TLS: ${code}`]);
  }
  return { certPem: cert.pem, keyPem: new Secret(key.pem), certificate: cert.value };
}

/** The first one in the file is the server's own. */
function parseCertificate(pem: string): X509Certificate {
  if (!pem.includes("-----BEGIN CERTIFICATE-----")) throw new Error("not in PEM form");
  return new X509Certificate(pem);
}
