import { type CertificateValidity, certificateValidity } from "../config/certificates.ts";
import { type TlsPort, tlsVariablesOf } from "../config/tls-files.ts";
import type { FindingId } from "./findings.ts";
import { type Condition, type IncidentSign, incidentSigns } from "./incident-signs.ts";
import type { MetricsText, Sample } from "./metrics-text.ts";

/** Metrics read twice: what has grown meanwhile is happening now. */
export interface TwoReadings {
  readonly before: MetricsText;
  readonly now: MetricsText;
  /** Unix time of the second. */
  readonly nowMs: number;
}

interface ServiceSign {
  readonly id: FindingId;
  /** What is wrong, each in a sentence; none if nothing is. */
  readonly problems: (readings: TwoReadings) => readonly string[];
  readonly fix: string;
}

type Wanted = (labels: Sample["labels"]) => boolean;

const samplesEverySeconds = 0.02;
const lateShareMax = 1 / 3;

/** What the doctor looks for in the metrics of a running service: the signs of incidents that have a finding. */
export const serviceSigns: readonly ServiceSign[] = [
  ...incidentSigns.flatMap((sign) => {
    const { finding: id, fix = "", unlessCoreAway } = sign;
    if (id === undefined) return [];
    const problems = (readings: TwoReadings) =>
      unlessCoreAway && isCoreAway(readings.now) ? [] : problemsOf(sign, readings);
    return [{ id, problems, fix }];
  }),
  ...(["public", "internal"] as const).flatMap((port) => [
    certificateSign(port, "certificate-ends-soon", "ends soon"),
    certificateSign(port, "certificate-expired", "expired"),
  ]),
];

function problemsOf(sign: IncidentSign, readings: TwoReadings): readonly string[] {
  const { metrics, condition, problem = "", sinceStart } = sign;
  const [name = ""] = metrics;
  const total = readings.now.sum(name) ?? 0;
  switch (condition.kind) {
    case "zero":
      return zeros(sign, readings.now);
    case "grown": {
      if (sinceStart) return total > 0 ? [`${total} ${problem} (${name})`] : [];
      const grown = grownBy(readings, name, hasValues(condition.where));
      return grown > 0 ? [`${grown} ${problem} while doctor looked (${name})`] : [];
    }
    case "grown earlier":
      return total > 0 && grownBy(readings, name) === 0 ? [`${total} ${problem}`] : [];
    case "slow":
      return lateWorkers(name, problem, readings);
    case "share": {
      const max = readings.now.sum(condition.of) ?? Number.POSITIVE_INFINITY;
      return total > condition.above * max ? [`${total} ${problem}, of ${max} at most`] : [];
    }
    case "ends":
      return [];
  }
}

function hasValues(where: Extract<Condition, { kind: "grown" }>["where"] = {}): Wanted {
  return (labels) => Object.entries(where).every(([label, values]) => values.includes(labels[label] ?? ""));
}

function grownBy({ before, now }: TwoReadings, name: string, wanted?: Wanted): number {
  return (now.sum(name, wanted) ?? 0) - (before.sum(name, wanted) ?? 0);
}

/** Whether the database or the data file of the service, or every coordinator of an edge, is away. */
function isCoreAway(metrics: MetricsText): boolean {
  const gauges = ["latchkey_database_up", "latchkey_data_file_up", "latchkey_coordinator_up"];
  return gauges.some((name) => metrics.sum(name) === 0);
}

/** One problem for each address, or one if there are none. */
function zeros({ metrics, problem = "", whereUp }: IncidentSign, now: MetricsText): readonly string[] {
  if (metrics.some((name) => now.sum(name) === undefined)) return [];
  const isUp = (address: string) => now.sum(whereUp ?? "", (labels) => labels.address === address) === 1;
  const atZero = metrics.flatMap((name) => now.of(name)).filter(({ value }) => value === 0);
  const addresses = [...new Set(atZero.map(({ labels }) => labels.address ?? ""))];
  return addresses
    .filter((address) => whereUp === undefined || isUp(address))
    .map((address) => {
      const names = atZero.filter(({ labels }) => (labels.address ?? "") === address).map(({ name }) => name);
      return `${problem.replace("{address}", address)} (${names.join(" and ")}: 0)`;
    });
}

/** Processes that were late for a good part of the time between the two readings. A sample is due every 20 ms. */
function lateWorkers(name: string, problem: string, readings: TwoReadings): readonly string[] {
  const workers = [...new Set(readings.now.of(`${name}_count`).map(({ labels }) => labels.worker ?? ""))];
  return workers.flatMap((worker) => {
    const isOfWorker = hasValues({ worker: [worker] });
    const lateSeconds = grownBy(readings, `${name}_sum`, isOfWorker);
    const share = lateSeconds / (lateSeconds + samplesEverySeconds * grownBy(readings, `${name}_count`, isOfWorker));
    if (!(share > lateShareMax)) return [];
    return [`${problem.replace("{worker}", worker)} for ${Math.round(100 * share)} % of the time`];
  });
}

function certificateSign(port: TlsPort, id: FindingId, wanted: CertificateValidity): ServiceSign {
  return {
    id,
    problems({ now, nowMs }) {
      const ends = now.sum("latchkey_certificate_expires_seconds", (labels) => labels.port === port);
      if (ends === undefined) return [];
      // The metric does not say when it begins.
      const [validFrom, validTo] = [0, ends * 1000].map((ms) => new Date(ms).toISOString()) as [string, string];
      if (certificateValidity({ validFrom, validTo }, nowMs) !== wanted) return [];
      return [`the certificate of the ${port} port ${wanted === "expired" ? "ended" : "ends"} at ${validTo}`];
    },
    fix: `Renew the certificate and replace the files of ${tlsVariablesOf(port).join(" and ")}.`,
  };
}
