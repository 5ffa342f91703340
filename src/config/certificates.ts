import { X509Certificate } from "node:crypto";
import { isIP } from "node:net";

export type CertificateValidity = "valid" | "ends soon" | "expired" | "not valid yet";

/** How long before its end a certificate should have been renewed. */
export const certificateSoonMs = 14 * 86_400_000;

export function certificateValidity(
  { validFrom, validTo }: Pick<X509Certificate, "validFrom" | "validTo">,
  nowMs: number,
): CertificateValidity {
  const endsMs = Date.parse(validTo);
  if (nowMs >= endsMs) return "expired";
  if (nowMs < Date.parse(validFrom)) return "not valid yet";
  return nowMs >= endsMs - certificateSoonMs ? "ends soon" : "valid";
}

/** The certificates of a PEM text, in its order. Throws if one is damaged. */
export function certificatesIn(pem: string): readonly X509Certificate[] {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  return blocks.map((block) => new X509Certificate(block));
}

/** Whether clients that connect to this host accept it. */
export function isCertificateFor(certificate: X509Certificate, host: string): boolean {
  return (isIP(host) === 0 ? certificate.checkHost(host) : certificate.checkIP(host)) !== undefined;
}
