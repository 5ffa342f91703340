import { type CertificateValidity, certificateValidity } from "../config/certificate-validity.ts";
import { type TlsPort, tlsSettingNames } from "../config/tls-files.ts";
import type { FindingId } from "./findings.ts";
import type { MetricsText } from "./metrics-text.ts";

/** Metrics read twice: what has grown meanwhile is happening now. */
export interface TwoReadings {
  readonly before: MetricsText;
  readonly now: MetricsText;
  /** Unix time of the second. */
  readonly nowMs: number;
}

/** A sign of an incident in the metrics: docs/metrics.md says what each means. */
interface Sign {
  readonly id: FindingId;
  /** What is wrong, each in a sentence; none if nothing is. */
  readonly problems: (readings: TwoReadings) => readonly string[];
  readonly fix: string;
}

type Wanted = (labels: Readonly<Record<string, string>>) => boolean;

const openFilesFrom = 0.8;
const samplesEverySeconds = 0.02;
const lateShareMax = 1 / 3;

export const serviceSigns: readonly Sign[] = [
  {
    id: "service-undecided",
    problems: (readings) => rising(readings, "latchkey_call_seconds_count", "calls got 503 or 500", isUndecided),
    fix: 'The findings beside this one, and the line "a call could not be decided" in the log, say why: docs/operations.md#when-the-database-is-away.',
  },
  {
    id: "service-shedding",
    problems: (readings) => rising(readings, "latchkey_shed_total", "calls or connections were turned away"),
    fix: "Start further replicas, or raise LATCHKEY_CALLS_MAX or LATCHKEY_CONNECTIONS_MAX if the processors are idle: docs/operations.md#overload.",
  },
  {
    id: "service-shed-earlier",
    problems(readings) {
      const total = readings.now.sum("latchkey_shed_total") ?? 0;
      if (total === 0 || grownBy(readings, "latchkey_shed_total") > 0) return [];
      return [`${total} calls or connections were turned away since the start, none now`];
    },
    fix: "rate(latchkey_shed_total[5m]) in Prometheus shows when; docs/operations.md#overload.",
  },
  {
    id: "service-event-loop-late",
    problems: lateThreads,
    fix: "Start further replicas, or set LATCHKEY_WORKERS to the number of cores; top -H -p PID shows what takes the time.",
  },
  {
    id: "service-database-away",
    problems: ({ now }) =>
      zeros(now, "latchkey_database_up", () => "Postgres does not answer the service, or takes no writes"),
    fix: "latchkey doctor with the service's own settings, on its machine, says why; docs/operations.md#when-the-database-is-away.",
  },
  {
    id: "service-data-file-down",
    problems: ({ now }) =>
      zeros(
        now,
        "latchkey_data_file_up",
        () => "the embedded store has no room to write, or its data file has a problem",
      ),
    fix: "latchkey doctor with the service's own settings, on its machine, says whether the disk is full; its log says what is wrong with the file. Do not stop it before you have read docs/operations.md#a-damaged-or-lost-data-file-embedded.",
  },
  {
    id: "service-change-feed-away",
    // Without its database the feed is away too: that is one finding.
    problems: ({ now }) =>
      isCoreAway(now) ? [] : zeros(now, "latchkey_change_feed_up", () => "changes of other replicas are not read"),
    fix: "latchkey doctor with the service's own settings, on its machine: its database or its coordinators do not answer.",
  },
  {
    id: "service-redis-away",
    problems({ now }) {
      // Only with Redis: an edge without it synchronises windows over its coordinators.
      if (now.sum("latchkey_key_changes_up") === undefined) return [];
      const gauges = ["latchkey_rate_limit_sync_up", "latchkey_key_changes_up"].filter((name) => now.sum(name) === 0);
      return gauges.length === 0 ? [] : [`Redis cannot be used (${gauges.join(" and ")}: 0)`];
    },
    fix: "latchkey doctor with the service's own settings, on its machine, says why Redis cannot be used; the log has the reason too.",
  },
  {
    id: "service-coordinator-away",
    problems: ({ now }) =>
      zeros(now, "latchkey_coordinator_up", (address) => `the coordinator ${address} does not answer the edge`),
    fix: "latchkey doctor with the edge's own settings, on its machine, says why.",
  },
  {
    id: "service-ledger-away",
    problems({ now }) {
      if (isCoreAway(now)) return [];
      const isReachable = (address: string) => now.sum("latchkey_coordinator_up", (of) => of.address === address) === 1;
      return [
        ...zeros(now, "latchkey_permit_ledger_up", () => "the ledger does not answer this coordinator"),
        ...zeros(now, "latchkey_coordinator_ledger_up", (of) => `the coordinator ${of} has no ledger`, isReachable),
      ];
    },
    fix: "latchkey doctor with the coordinator's own settings, on its machine: its Postgres does not answer.",
  },
  {
    id: "service-strict-unsettled",
    problems: (readings) =>
      rising(readings, "latchkey_unsettled_denials_total", "verifications were refused while others held permits"),
    fix: "Look for a replica or a region that is cut off or very slow: latchkey_coordinator_up and latchkey_coordinator_path_seconds of each edge.",
  },
  {
    id: "service-windows-full",
    problems: (readings) =>
      rising(
        readings,
        "latchkey_rate_limit_windows_full_total",
        "calls got 503 because no window was free for their API",
      ),
    fix: "Set LATCHKEY_WINDOWS_MAX, or LATCHKEY_FREE_WINDOWS_MAX for free-standing limits, to twice what it is.",
  },
  {
    id: "service-clock-jumped",
    problems: ({ now }) =>
      above(now, "latchkey_ledger_clock_jumps_total", 0, "times the ledger's clock jumped since the start"),
    fix: "chronyc tracking on the database's machine; let the time service slew, not step: docs/operations.md#clocks.",
  },
  {
    id: "service-failures",
    problems: ({ now }) =>
      above(now, "latchkey_serving_failures_total", 0, "connections or streams failed unexpectedly"),
    fix: "Please report the line of the log with level error.",
  },
  {
    id: "service-open-files",
    problems({ now }) {
      const [open = 0, max = Number.POSITIVE_INFINITY] = [now.sum("process_open_fds"), now.sum("process_max_fds")];
      return open > openFilesFrom * max ? [`${open} files are open, of ${max} at most`] : [];
    },
    fix: "ulimit -n 65536 before the start (systemd: LimitNOFILE=65536), or a lower LATCHKEY_CONNECTIONS_MAX.",
  },
  ...(["public", "internal"] as const).flatMap((port) => [
    certificateSign(port, "certificate-ends-soon", "ends soon"),
    certificateSign(port, "certificate-expired", "expired"),
  ]),
];

function isUndecided({ code }: Readonly<Record<string, string>>): boolean {
  return code === "SERVICE_UNAVAILABLE" || code === "INTERNAL_SERVER_ERROR";
}

function grownBy({ before, now }: TwoReadings, name: string, wanted?: Wanted): number {
  return (now.sum(name, wanted) ?? 0) - (before.sum(name, wanted) ?? 0);
}

function rising(readings: TwoReadings, name: string, what: string, wanted?: Wanted): readonly string[] {
  const grown = grownBy(readings, name, wanted);
  return grown > 0 ? [`${grown} ${what} while doctor looked (${name})`] : [];
}

function above(metrics: MetricsText, name: string, bound: number, what: string): readonly string[] {
  const value = metrics.sum(name) ?? 0;
  return value > bound ? [`${value} ${what} (${name})`] : [];
}

/** Whether the database or the data file of the service, or every coordinator of an edge, is away. */
function isCoreAway(metrics: MetricsText): boolean {
  const gauges = ["latchkey_database_up", "latchkey_data_file_up", "latchkey_coordinator_up"];
  return gauges.some((name) => metrics.sum(name) === 0);
}

/** Gauges that are 0. Both functions get the label `address`, if there is one. */
function zeros(
  metrics: MetricsText,
  name: string,
  say: (address: string) => string,
  wanted: (address: string) => boolean = () => true,
): readonly string[] {
  const addresses = metrics.of(name).flatMap(({ labels, value }) => (value === 0 ? [labels.address ?? ""] : []));
  return addresses.filter(wanted).map((address) => `${say(address)} (${name} is 0)`);
}

/** Threads that were late for a good part of the time between the two readings. A sample is due every 20 ms. */
function lateThreads(readings: TwoReadings): readonly string[] {
  const name = "latchkey_event_loop_delay_seconds";
  const threads = [...new Set(readings.now.of(`${name}_count`).map(({ labels }) => labels.thread ?? ""))];
  return threads.flatMap((thread) => {
    const isOfThread: Wanted = (labels) => labels.thread === thread;
    const lateSeconds = grownBy(readings, `${name}_sum`, isOfThread);
    const share = lateSeconds / (lateSeconds + samplesEverySeconds * grownBy(readings, `${name}_count`, isOfThread));
    if (!(share > lateShareMax)) return [];
    return [`the event loop of thread ${thread} was late for ${Math.round(100 * share)} % of the time`];
  });
}

function certificateSign(port: TlsPort, id: FindingId, wanted: CertificateValidity): Sign {
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
    fix: `Renew the certificate and replace the files of ${tlsSettingNames[port].join(" and ")}.`,
  };
}
