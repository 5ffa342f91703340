import type { X509Certificate } from "node:crypto";
import { hostname, networkInterfaces } from "node:os";
import { isCertificateFor } from "../config/certificates.ts";
import { inUrl, isEveryAddress } from "../config/hosts.ts";

/** What is known of the machine that this process runs on. */
export interface Machine {
  /** Its addresses that other machines may reach, the usual one first. */
  addresses(): readonly string[];
  hostname(): string;
}

export const thisMachine: Machine = {
  addresses() {
    const outside = Object.values(networkInterfaces()).flatMap(
      (list) => list?.filter(({ internal }) => !internal) ?? [],
    );
    const ofFamily = (family: string) => outside.filter((each) => each.family === family);
    // An address of IPv6 that begins like this is valid on one link only.
    const global = ofFamily("IPv6").filter(({ address }) => !address.startsWith("fe80:"));
    return [...ofFamily("IPv4"), ...global].map(({ address }) => address);
  },
  hostname,
};

/**
 * The URL at which other machines reach a listener, if any can. With TLS it names what this certificate is valid for,
 * because clients refuse every other name.
 */
export function reachableUrl(host: string, port: number, machine: Machine, certificate?: X509Certificate): string {
  const hosts = isEveryAddress(host) ? [...machine.addresses(), machine.hostname()] : [host];
  if (certificate === undefined) return `http://${inUrl(hosts[0] as string)}:${port}`;
  return `https://${inUrl(coveredHost(certificate, hosts) ?? (hosts[0] as string))}:${port}`;
}

/** One of these that the certificate is valid for, or else the first host that it names. */
function coveredHost(certificate: X509Certificate, hosts: readonly string[]): string | undefined {
  const { subjectAltName = "" } = certificate;
  return (
    hosts.find((host) => isCertificateFor(certificate, host)) ??
    /(?:^|, )DNS:(?<name>[\w.-]+)(?:,|$)/.exec(subjectAltName)?.groups?.name
  );
}
