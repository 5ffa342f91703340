import type { X509Certificate } from "node:crypto";
import { certificateValidity } from "../config/certificates.ts";
import type { Report } from "./run-checks.ts";

const dayMs = 86_400_000;

/** Whether it can be used now and in two weeks. `renew` is what to type. */
export function reportValidity(
  what: string,
  certificate: Pick<X509Certificate, "validFrom" | "validTo">,
  nowMs: number,
  renew: string,
  { checked, found }: Pick<Report, "checked" | "found">,
): void {
  const { validFrom, validTo } = certificate;
  const days = Math.floor((Date.parse(validTo) - nowMs) / dayMs);
  const validity = certificateValidity(certificate, nowMs);
  if (validity === "expired") found("certificate-expired", `${what} has expired: ${validTo}`, renew);
  else if (validity === "not valid yet")
    found("certificate-not-yet-valid", `${what} is not valid before ${validFrom}`, `date; ${renew}`);
  else if (validity === "ends soon")
    found("certificate-ends-soon", `${what} ends in ${days} ${days === 1 ? "day" : "days"}: ${validTo}`, renew);
  else checked(`${what} is valid until ${validTo}`);
}

/** The first certificate that the one behind it has not issued. */
export function findBrokenLink(chain: readonly X509Certificate[]): number | undefined {
  const at = chain.findIndex((each, i) => i + 1 < chain.length && !each.checkIssued(chain[i + 1] as X509Certificate));
  return at < 0 ? undefined : at;
}
