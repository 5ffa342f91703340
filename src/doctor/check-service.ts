import { setTimeout as delay } from "node:timers/promises";
import type { Clock } from "../ambient/clock.ts";
import { tlsVariablesOf } from "../config/tls-files.ts";
import type { Secret } from "../domain/secret.ts";
import { isUntrustedCertificate } from "../domain/untrusted-certificate.ts";
import { reportValidity } from "./certificates.ts";
import { codeOf, type HttpAnswer, httpGet } from "./http-get.ts";
import { MetricsText } from "./metrics-text.ts";
import { type Diagnosis, type Report, runChecks } from "./run-checks.ts";
import { serviceSigns } from "./service-signs.ts";

export interface ServiceAddresses {
  readonly url: URL;
  /** Undefined: metrics are not read. */
  readonly internalUrl: URL | undefined;
  readonly secret: Secret | undefined;
  /** Certificates that vouch for the internal port. */
  readonly internalCa: string | undefined;
}

/** Between two readings of the metrics. */
const readingsApartMs = 1000;
const clockToleranceMs = 3000;

/** Checks a service that runs, by what it answers to everybody and by its metrics. */
export function checkService(addresses: ServiceAddresses, clock: Clock): Promise<Diagnosis> {
  return runChecks({
    service: (report) => checkProbes(addresses.url, clock, report),
    metrics: (report) => checkMetrics(addresses, clock, report),
  });
}

async function checkProbes(url: URL, clock: Clock, report: Report): Promise<void> {
  const { checked, found } = report;
  let answer: HttpAnswer;
  try {
    answer = await httpGet(new URL("readyz", url));
  } catch (error) {
    reportUnreachable(url, codeOf(error), found);
    return;
  }
  const { status, certificate, headers, roundTripMs } = answer;
  if (status === 200) checked(`${url.href} is ready, ${Math.round(roundTripMs)} ms away`);
  else if (status === 503) {
    const fix =
      "The other findings say why, if its metrics can be read; else its log: it waits for its database or its coordinators, its data file is damaged or lost, or it is stopping.";
    found("service-not-ready", `${url.href} is not ready`, fix);
  } else {
    const fix = "Correct --url: it is the public port of Latchkey, or of the proxy before it, without a path.";
    found("service-unreachable", `${url.href} answers /readyz with ${status}, as Latchkey never does`, fix);
  }
  if (certificate !== undefined) {
    reportValidity(`the certificate of ${url.host}`, certificate, clock.nowMs(), renew, report);
  }
  reportClock(url, headers.date, roundTripMs, clock.nowMs(), report);
}

const renew = "Renew it where TLS ends: in the proxy before Latchkey, or in the files that its settings name.";

function reportUnreachable(url: URL, code: string, found: Report["found"]): void {
  if (isUntrustedCertificate(code)) {
    found("service-untrusted", `the certificate of ${url.host} is not trusted: ${code}`, untrustedFix(code));
    return;
  }
  const fix = `curl -v ${new URL("livez", url).href} from this machine; then start it, or correct --url, HOST and PORT of the service, or the firewall.`;
  found("service-unreachable", `${url.href} does not answer: ${code}`, fix);
}

function untrustedFix(code: string): string {
  if (code === "CERT_HAS_EXPIRED") return renew;
  if (code === "ERR_TLS_CERT_ALTNAME_INVALID")
    return "Correct --url to a name that is in the certificate, or request a certificate with this name in it.";
  return "NODE_EXTRA_CA_CERTS=/path/ca.pem latchkey doctor …, if the authority is your own; else a certificate of an authority that clients trust.";
}

/** The header has whole seconds, and is made before the answer comes. */
function reportClock(url: URL, date: string | undefined, roundTripMs: number, nowMs: number, { found }: Report): void {
  const aheadMs = Date.parse(date ?? "") - nowMs;
  if (Number.isNaN(aheadMs) || Math.abs(aheadMs) - roundTripMs < clockToleranceMs) return;
  const direction = aheadMs > 0 ? "ahead of" : "behind";
  const problem = `the clock of ${url.host} is ${Math.round(Math.abs(aheadMs) / 1000)} s ${direction} this machine's`;
  found("service-clock", problem, "timedatectl on both machines; then chronyc makestep on the wrong one.");
}

async function checkMetrics(addresses: ServiceAddresses, clock: Clock, { checked, found }: Report): Promise<void> {
  const { internalUrl, secret, internalCa: ca } = addresses;
  if (internalUrl === undefined) return checked("not read: --internal-url http://host:8081 names the internal port");
  const headers: Record<string, string> = secret === undefined ? {} : { authorization: `Bearer ${secret.reveal()}` };
  const read = () => httpGet(new URL("metrics", internalUrl), { headers, ca });
  try {
    const first = await read();
    if (first.status !== 200) {
      const fix =
        first.status === 401
          ? "Set LATCHKEY_INTERNAL_SECRET or LATCHKEY_INTERNAL_SECRET_FILE as the service has it."
          : "Correct --internal-url: it is LATCHKEY_INTERNAL_PORT of the service.";
      found("internal-port-refused", `${internalUrl.href} answers ${first.status}`, fix);
      return;
    }
    await delay(readingsApartMs);
    const second = await read();
    const readings = { before: new MetricsText(first.text), now: new MetricsText(second.text), nowMs: clock.nowMs() };
    checked(`looked for ${serviceSigns.length} signs of incidents in the metrics of ${internalUrl.host}`);
    for (const { id, problems, fix } of serviceSigns) for (const problem of problems(readings)) found(id, problem, fix);
  } catch (error) {
    const code = codeOf(error);
    found("internal-port-unreachable", `${internalUrl.href} does not answer: ${code}`, internalPortFix(code));
  }
}

function internalPortFix(code: string): string {
  if (code === "CERT_HAS_EXPIRED")
    return `Renew its certificate and replace the files of ${tlsVariablesOf("internal").join(" and ")}.`;
  if (code === "ERR_TLS_CERT_ALTNAME_INVALID")
    return "Correct --internal-url to a name that is in the certificate, or request a certificate with this name in it.";
  if (isUntrustedCertificate(code))
    return "LATCHKEY_INTERNAL_CA_FILE=/path/ca.pem must name the authority of the internal port's certificate.";
  return "Name it with --internal-url (https:// if it speaks TLS), or run doctor on the service's machine: the port is bound to loopback by default.";
}
