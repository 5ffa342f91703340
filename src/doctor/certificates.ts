import { X509Certificate } from "node:crypto";
import { isIP } from "node:net";
import { certificateValidity } from "../config/certificate-validity.ts";
import type { Report } from "./run-checks.ts";

const dayMs = 86_400_000;

/** Whether it can be used now and in two weeks. `renew` is what to type. */
export function reportValidity(
  what: string,
  certificate: Pick<X509Certificate, "validFrom" | "validTo">,
  nowMs: number,
  renew: string,
  { looked, found }: Pick<Report, "looked" | "found">,
): void {
  const { validFrom, validTo } = certificate;
  const days = Math.floor((Date.parse(validTo) - nowMs) / dayMs);
  const validity = certificateValidity(certificate, nowMs);
  if (validity === "expired") found("certificate-expired", `${what} has expired: ${validTo}`, renew);
  else if (validity === "not valid yet")
    found("certificate-not-yet-valid", `${what} is not valid before ${validFrom}`, `date; ${renew}`);
  else if (validity === "ends soon")
    found("certificate-ends-soon", `${what} ends in ${days} ${days === 1 ? "day" : "days"}: ${validTo}`, renew);
  else looked(`${what} is valid until ${validTo}`);
}

/** The certificates of a PEM text, in its order. */
export function certificatesIn(pem: string): readonly X509Certificate[] {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  return blocks.map((block) => new X509Certificate(block));
}

/** The first certificate that the one behind it has not issued. */
export function findBrokenLink(chain: readonly X509Certificate[]): number | undefined {
  const at = chain.findIndex((each, i) => i + 1 < chain.length && !each.checkIssued(chain[i + 1] as X509Certificate));
  return at < 0 ? undefined : at;
}

export function isFor(certificate: X509Certificate, host: string): boolean {
  return (isIP(host) === 0 ? certificate.checkHost(host) : certificate.checkIP(host)) !== undefined;
}
