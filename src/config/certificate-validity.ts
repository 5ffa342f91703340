import type { X509Certificate } from "node:crypto";

export type CertificateValidity = "valid" | "ends soon" | "expired" | "not valid yet";

/** How long before its end a certificate should have been renewed. */
const soonMs = 14 * 86_400_000;

export function certificateValidity(
  { validFrom, validTo }: Pick<X509Certificate, "validFrom" | "validTo">,
  nowMs: number,
): CertificateValidity {
  const endsMs = Date.parse(validTo);
  if (nowMs >= endsMs) return "expired";
  if (nowMs < Date.parse(validFrom)) return "not valid yet";
  return nowMs >= endsMs - soonMs ? "ends soon" : "valid";
}
