import type { Ambient } from "../ambient/ambient.ts";
import { certificateValidity } from "../config/certificate-validity.ts";
import { sameValue } from "../config/same-value.ts";
import type { Settings } from "../config/settings.ts";
import type { TlsIdentity, TlsPort } from "../config/tls-files.ts";
import type { LiveSettings } from "./live-settings.ts";

type Deps = Pick<Ambient, "clock" | "log" | "metrics">;

/** Tells of the certificates that are in use: a metric of their end, and a warning where clients refuse them. */
export function reportCertificates(live: LiveSettings, deps: Deps): void {
  for (const port of ["public", "internal"] as const) {
    const first = identityOf(port, live.current);
    if (first === undefined) continue;
    warnOfDates(port, first, deps);
    const expiresSeconds = () => Date.parse(identityOf(port, live.current)?.certificate.validTo ?? "") / 1000;
    const help = "Unix time at which the certificate of each port expires.";
    deps.metrics.gauge("latchkey_certificate_expires_seconds", help, expiresSeconds, { port });
    live.follow((next, before) => {
      const identity = identityOf(port, next);
      if (identity === undefined || sameValue(identity, identityOf(port, before))) return;
      deps.log.info("a port has a new certificate", { port, expires: identity.certificate.validTo });
      warnOfDates(port, identity, deps);
    });
  }
}

function identityOf(port: TlsPort, { tls, internalTls }: Settings): TlsIdentity | undefined {
  return port === "public" ? tls : internalTls;
}

function warnOfDates(port: TlsPort, { certificate }: TlsIdentity, { clock, log }: Deps): void {
  const validity = certificateValidity(certificate, clock.nowMs());
  if (validity === "expired") {
    log.warn("a certificate has expired: clients refuse it", { port, expired: certificate.validTo });
  } else if (validity === "not valid yet") {
    log.warn("a certificate is not valid yet: clients refuse it", { port, from: certificate.validFrom });
  }
}
