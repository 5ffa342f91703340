import { readFileSync } from "node:fs";
import type { Clock } from "../ambient/clock.ts";
import { certificatesIn, isCertificateFor } from "../config/certificates.ts";
import { isEveryAddress, isLoopback } from "../config/hosts.ts";
import type { Settings } from "../config/settings.ts";
import { readTlsIdentity, type TlsFiles, TlsFilesError, tlsPorts, tlsVariablesOf } from "../config/tls-files.ts";
import { shellWord } from "../domain/shell-word.ts";
import { findBrokenLink, reportValidity } from "./certificates.ts";
import type { Report } from "./run-checks.ts";

/** A port with a certificate: its files, and the address that it is bound to. */
export type PortCertificate = ReturnType<typeof portCertificatesOf>[number];

/** Those whose files are both named. */
export function portCertificatesOf(settings: Partial<Settings>) {
  return (["public", "internal"] as const).flatMap((port) => {
    const { cert, key, host } = tlsPorts[port];
    const { [cert]: certFile, [key]: keyFile } = settings;
    return certFile && keyFile ? [{ port, certFile, keyFile, host: settings[host] ?? "" }] : [];
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
export function checkCertificates(
  certificates: readonly PortCertificate[],
  clock: Pick<Clock, "nowMs">,
  report: Report,
): void {
  for (const certificate of certificates) checkOne(certificate, clock.nowMs(), report);
}

function checkOne(files: PortCertificate, nowMs: number, report: Report): void {
  const { port, host, certFile, keyFile } = files;
  const cert = shellWord(certFile);
  const problems = tlsProblemsOf(files);
  for (const problem of problems) {
    const fix = `openssl x509 -noout -pubkey -in ${cert} | openssl sha256 and openssl pkey -pubout -in ${shellWord(keyFile)} | openssl sha256 must print the same; put the right files there.`;
    report.found("certificate-unusable", problem, fix);
  }
  if (problems.length > 0) return;
  const chain = certificatesIn(readFileSync(certFile, "utf8"));
  const [own] = chain;
  if (own === undefined) return;
  const what = `the certificate of the ${port} port`;
  const renew = `Renew the certificate and replace both files (${cert}, ${shellWord(keyFile)}): they are read again without a restart.`;
  reportValidity(what, own, nowMs, renew, report);
  const broken = findBrokenLink(chain);
  if (broken !== undefined) {
    const fix = `cat own.pem intermediate.pem > ${cert}: the own certificate first, then each that vouches for the one before.`;
    const problem = `certificate ${broken + 1} of ${chain.length} in ${certFile} was not issued by the next one`;
    report.found("certificate-chain", problem, fix);
  }
  const isOneAddress = host !== "" && !isEveryAddress(host) && !isLoopback(host);
  if (own.subjectAltName === undefined) {
    const fix = `Request a certificate with the names in it: openssl req -addext subjectAltName=DNS:name,IP:address`;
    report.found("certificate-names", `${what} has no subjectAltName (${tlsVariablesOf(port)[0]})`, fix);
  } else if (isOneAddress && !isCertificateFor(own, host)) {
    const fix = `Request a certificate for it: openssl req -addext subjectAltName=${`${own.subjectAltName},IP:${host}`.replaceAll(" ", "")}`;
    report.found("certificate-names", `${what} is not for ${host}, where the port is: ${own.subjectAltName}`, fix);
  }
}
