import { readFileSync } from "node:fs";
import type { Clock } from "../ambient/clock.ts";
import { isLoopback } from "../config/loopback.ts";
import type { Settings } from "../config/settings.ts";
import { readTlsIdentity, type TlsFiles, TlsFilesError, type TlsPort } from "../config/tls-files.ts";
import { variables } from "../config/variables.ts";
import { certificatesIn, findBrokenLink, isFor, reportValidity } from "./certificates.ts";
import { quote } from "./check-files.ts";
import type { Check, Report } from "./run-checks.ts";

/** The ports with a certificate: the settings that name its files, and the address that the port is bound to. */
const ports = [
  { port: "public", cert: "tlsCert", key: "tlsKey", host: "host" },
  { port: "internal", cert: "internalTlsCert", key: "internalTlsKey", host: "internalHost" },
] as const satisfies readonly { port: TlsPort; [role: string]: string }[];

export interface PortCertificate extends TlsFiles {
  readonly certFile: string;
  readonly keyFile: string;
  readonly host: string;
  /** The name of the setting. */
  readonly certName: string;
}

/** Those whose files are both named. */
export function portCertificatesOf(settings: Partial<Settings>): readonly PortCertificate[] {
  return ports.flatMap(({ port, cert, key, host }) => {
    const [certFile, keyFile] = [settings[cert], settings[key]];
    if (certFile === undefined || keyFile === undefined) return [];
    return [{ port, certFile, keyFile, host: settings[host] ?? "", certName: variables[cert].name }];
  });
}

/** Why a start would refuse the files, in its own words. */
export function tlsProblemsOf(files: TlsFiles): readonly string[] {
  try {
    readTlsIdentity(files, (path) => readFileSync(path, "utf8"));
    return [];
  } catch (error) {
    if (error instanceof TlsFilesError) return error.problems;
    throw error;
  }
}

/** The certificates that this process shows: that they belong to their keys, their dates, their chains, their names. */
export function checkCertificates(certificates: readonly PortCertificate[], clock: Pick<Clock, "nowMs">): Check {
  return {
    area: "certificates",
    run(report) {
      for (const certificate of certificates) checkOne(certificate, clock.nowMs(), report);
    },
  };
}

function checkOne(files: PortCertificate, nowMs: number, report: Report): void {
  const { port, host, certFile, keyFile, certName } = files;
  const cert = quote(certFile);
  const problems = tlsProblemsOf(files);
  for (const problem of problems) {
    const fix = `openssl x509 -noout -pubkey -in ${cert} | openssl sha256 and openssl pkey -pubout -in ${quote(keyFile)} | openssl sha256 must print the same; put the right files there.`;
    report.found("certificate-unusable", problem, fix);
  }
  if (problems.length > 0) return;
  const chain = certificatesIn(readFileSync(certFile, "utf8"));
  const [own] = chain;
  if (own === undefined) return;
  const what = `the certificate of the ${port} port`;
  const renew = `Renew the certificate and replace both files (${cert}, ${quote(keyFile)}): they are read again without a restart.`;
  reportValidity(what, own, nowMs, renew, report);
  const broken = findBrokenLink(chain);
  if (broken !== undefined) {
    const fix = `cat own.pem intermediate.pem > ${cert}: the own certificate first, then each that vouches for the one before.`;
    const problem = `certificate ${broken + 1} of ${chain.length} in ${certFile} was not issued by the next one`;
    report.found("certificate-chain", problem, fix);
  }
  const isOneAddress = host !== "" && host !== "0.0.0.0" && host !== "::" && !isLoopback(host);
  if (own.subjectAltName === undefined) {
    const fix = `Request a certificate with the names in it: openssl req -addext subjectAltName=DNS:name,IP:address`;
    report.found("certificate-names", `${what} has no subjectAltName (${certName})`, fix);
  } else if (isOneAddress && !isFor(own, host)) {
    const fix = `Request a certificate for it: openssl req -addext subjectAltName=${`${own.subjectAltName},IP:${host}`.replaceAll(" ", "")}`;
    report.found("certificate-names", `${what} is not for ${host}, where the port is: ${own.subjectAltName}`, fix);
  }
}
