import type { Ambient } from "../ambient/ambient.ts";
import { certificateValidity } from "../config/certificates.ts";
import { sameValue } from "../config/same-value.ts";
import { type TlsIdentity, type TlsPort, tlsPorts } from "../config/tls-files.ts";
import type { LiveSettings } from "./live-settings.ts";

type Deps = Pick<Ambient, "clock" | "log" | "metrics">;

/** Reports the certificates that are in use: a metric of their end, and a warning where clients refuse them. */
export function reportCertificates(live: LiveSettings, deps: Deps): void {
  for (const port of ["public", "internal"] as const) {
    const { identity } = tlsPorts[port];
    const first = live.current[identity];
    if (first === undefined) continue;
    warnOfDates(port, first, deps);
    const expiresSeconds = () => Date.parse(live.current[identity]?.certificate.validTo ?? "") / 1000;
    const help = "Unix time at which the certificate of each port expires.";
    deps.metrics.gauge("latchkey_certificate_expires_seconds", help, expiresSeconds, { port });
    live.follow(({ [identity]: next }, { [identity]: before }) => {
      if (next === undefined || sameValue(next, before)) return;
      deps.log.info("a port has a new certificate", { port, expires: next.certificate.validTo });
      warnOfDates(port, next, deps);
    });
  }
}

function warnOfDates(port: TlsPort, { certificate }: TlsIdentity, { clock, log }: Deps): void {
  const validity = certificateValidity(certificate, clock.nowMs());
  if (validity === "expired") {
    log.warn("a certificate has expired: clients refuse it", { port, expired: certificate.validTo });
  } else if (validity === "not valid yet") {
    log.warn("a certificate is not valid yet: clients refuse it", { port, from: certificate.validFrom });
  }
}
