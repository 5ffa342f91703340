import { certificateSoonMs } from "../config/certificates.ts";
import type { FindingId } from "./findings.ts";

/** When a metric is a sign. Plain data, of which the doctor's check, the Prometheus expression and the words are made. */
export type Condition =
  /** A gauge is 0; with `ofAll`, it is 0 for every label. */
  | { readonly kind: "zero"; readonly ofAll?: true }
  /** A counter has grown by more than `above` (0). `isNew`: its series begins with the first event. */
  | {
      readonly kind: "grown";
      readonly within: string;
      readonly above?: number;
      readonly where?: LabelValues;
      readonly by?: readonly string[];
      readonly isNew?: true;
    }
  /** A counter is not 0, but does not grow now. */
  | { readonly kind: "grown earlier" }
  /** The slowest hundredth of a histogram, in seconds. */
  | { readonly kind: "slow"; readonly above: number; readonly where?: LabelValues; readonly by?: readonly string[] }
  /** Less than this time is left until a moment. */
  | { readonly kind: "ends"; readonly withinMs: number }
  /** A gauge is above a share of another one. */
  | { readonly kind: "share"; readonly above: number; readonly of: string };

type LabelValues = Readonly<Record<string, readonly string[]>>;

/** A sign of an incident in the metrics: an alert, a finding of the doctor, and "when to worry" in docs/metrics.md. */
export interface IncidentSign {
  /** One of them is enough. The doctor looks only at a service that exports all of them. */
  readonly metrics: readonly string[];
  readonly condition: Condition;
  readonly meaning?: string;
  /** What to do: a heading of docs/operations.md. */
  readonly runbook?: string;
  /** With the time for which the condition must hold. */
  readonly alert?: readonly [name: string, severity: "critical" | "warning", forTime?: string];
  /** The summary of the alert, as a template of Prometheus. */
  readonly summary?: string;
  readonly finding?: FindingId;
  /** What the doctor says, with `{address}` for the label of that name, and what it advises. */
  readonly problem?: string;
  readonly fix?: string;
  /** The doctor counts since the start, because it should never happen. */
  readonly sinceStart?: true;
  /** Follows from a database, a data file or coordinators that are away: then it is no finding of its own. */
  readonly unlessCoreAway?: true;
  /** A finding only for labels for which this gauge is 1. */
  readonly whereUp?: string;
}

/** `npm run generate` makes deploy/prometheus/rules.yml and the last column of the tables in docs/metrics.md of it. */
export const incidentSigns: readonly IncidentSign[] = [
  {
    metrics: ["latchkey_call_seconds_count"],
    condition: {
      kind: "grown",
      within: "5m",
      where: { code: ["SERVICE_UNAVAILABLE", "INTERNAL_SERVER_ERROR"] },
      by: [],
      isNew: true,
    },
    meaning: "Calls were answered with 503 or 500: their callers got no decision.",
    runbook: "503s",
    alert: ["LatchkeyCallsUndecided", "critical"],
    summary: "{{ $labels.instance }} could not decide calls",
    finding: "service-undecided",
    problem: "calls got 503 or 500",
    fix: 'The findings beside this one, and the line "a call could not be decided" in the log, say why: docs/operations.md#when-the-database-is-away.',
  },
  {
    metrics: ["latchkey_database_up"],
    condition: { kind: "zero" },
    meaning:
      "Postgres does not answer, or takes no changes. Keys with counters get 503; others are served from memory for a while.",
    runbook: "postgres-is-gone",
    alert: ["LatchkeyDatabaseDown", "critical", "30s"],
    summary: "{{ $labels.instance }} cannot use its Postgres",
    finding: "service-database-away",
    problem: "Postgres does not answer the service, or takes no writes",
    fix: "latchkey doctor with the service's own settings, on its machine, says why; docs/operations.md#when-the-database-is-away.",
  },
  {
    metrics: ["latchkey_data_file_up"],
    condition: { kind: "zero" },
    meaning:
      "The disk of the embedded store is full, or its file is damaged, lost or could not be written. Keys with counters and changes get 503. Read on before you stop the service.",
    runbook: "a-damaged-or-lost-data-file-embedded",
    alert: ["LatchkeyDataFileDown", "critical", "30s"],
    summary: "{{ $labels.instance }} cannot use its data file",
    finding: "service-data-file-down",
    problem: "the embedded store has no room to write, or its data file has a problem",
    fix: "latchkey doctor with the service's own settings, on its machine, says whether the disk is full; its log says what is wrong with the file. Do not stop it before you have read docs/operations.md#a-damaged-or-lost-data-file-embedded.",
  },
  {
    metrics: ["latchkey_permit_ledger_up"],
    condition: { kind: "zero" },
    meaning:
      "The coordinator's ledger does not answer. Edges use another coordinator, if there is one whose ledger answers.",
    runbook: "postgres-is-gone",
    alert: ["LatchkeyPermitLedgerDown", "critical", "30s"],
    summary: "The coordinator {{ $labels.instance }} has no ledger",
    finding: "service-ledger-away",
    problem: "the ledger does not answer this coordinator",
    fix: "latchkey doctor with the coordinator's own settings, on its machine: its Postgres does not answer.",
    unlessCoreAway: true,
  },
  {
    metrics: ["latchkey_coordinator_ledger_up"],
    condition: { kind: "zero", ofAll: true },
    meaning:
      "No coordinator of the edge reaches its ledger. Keys with counters, and strict limits whose permits are used up, get 503.",
    runbook: "postgres-is-gone",
    alert: ["LatchkeyEdgeWithoutLedger", "critical", "30s"],
    summary: "No coordinator of the edge {{ $labels.instance }} reaches its ledger",
    finding: "service-ledger-away",
    problem: "the coordinator {address} has no ledger",
    fix: "latchkey doctor with the coordinator's own settings, on its machine: its Postgres does not answer.",
    unlessCoreAway: true,
    whereUp: "latchkey_coordinator_up",
  },
  {
    metrics: ["latchkey_coordinator_up"],
    condition: { kind: "zero" },
    meaning: "The edge's work goes to its other coordinators. Without any, counted keys get 503.",
    runbook: "503s",
    alert: ["LatchkeyCoordinatorDown", "warning", "1m"],
    summary: "{{ $labels.instance }} cannot reach the coordinator {{ $labels.address }}",
    finding: "service-coordinator-away",
    problem: "the coordinator {address} does not answer the edge",
    fix: "latchkey doctor with the edge's own settings, on its machine, says why.",
  },
  {
    metrics: ["latchkey_change_feed_up"],
    condition: { kind: "zero" },
    meaning:
      "The change feed cannot be read: keys that were deleted or disabled elsewhere may still be served from memory, for LATCHKEY_CACHE_TTL_MS at most.",
    runbook: "postgres-is-gone",
    alert: ["LatchkeyChangeFeedDown", "critical", "30s"],
    summary: "{{ $labels.instance }} does not hear of changes",
    finding: "service-change-feed-away",
    problem: "changes of other replicas are not read",
    fix: "latchkey doctor with the service's own settings, on its machine: its database or its coordinators do not answer.",
    unlessCoreAway: true,
  },
  {
    metrics: ["latchkey_shed_total"],
    condition: { kind: "grown", within: "5m", by: ["what"] },
    meaning:
      "Calls, connections or streams were rejected, because too many were waiting or open: the service or its database is too slow for the load.",
    runbook: "503s",
    alert: ["LatchkeyLoadShed", "critical"],
    summary: '{{ $labels.instance }} had no room for {{ printf "%.0f" $value }} of kind {{ $labels.what }}',
    finding: "service-shedding",
    problem: "calls or connections were turned away",
    fix: "Start further replicas, or raise LATCHKEY_CALLS_MAX or LATCHKEY_CONNECTIONS_MAX if the processors are idle: docs/operations.md#overload.",
  },
  {
    metrics: ["latchkey_shed_total"],
    condition: { kind: "grown earlier" },
    finding: "service-shed-earlier",
    problem: "calls or connections were turned away since the start, none now",
    fix: "rate(latchkey_shed_total[5m]) in Prometheus shows when; docs/operations.md#overload.",
  },
  {
    metrics: ["latchkey_rate_limit_windows_full_total"],
    condition: { kind: "grown", within: "5m" },
    meaning:
      "Verifications got 503 because no window was free for their API. Raise LATCHKEY_WINDOWS_MAX, or LATCHKEY_FREE_WINDOWS_MAX for ratelimits.limit.",
    runbook: "503s",
    alert: ["LatchkeyWindowsFull", "critical"],
    summary: "{{ $labels.instance }} has no windows left for rate limits",
    finding: "service-windows-full",
    problem: "calls got 503 because no window was free for their API",
    fix: "Set LATCHKEY_WINDOWS_MAX, or LATCHKEY_FREE_WINDOWS_MAX for free-standing limits, to twice what it is.",
  },
  {
    metrics: ["latchkey_ledger_events_total"],
    condition: { kind: "grown", within: "5m", where: { event: ["given-up"] }, by: [] },
    meaning: "Batches were given up after their time-out, and their callers got 503: Postgres is away or too slow.",
    runbook: "503s",
    alert: ["LatchkeyLedgerGaveUp", "critical"],
    summary: "{{ $labels.instance }} could not settle uses or permits",
  },
  {
    metrics: ["latchkey_serving_failures_total"],
    condition: { kind: "grown", within: "1h" },
    meaning:
      "Connections or streams were destroyed because serving them failed. A mistake in the service. Please report the log line.",
    runbook: "503s",
    alert: ["LatchkeyServingFailed", "warning"],
    summary: "{{ $labels.instance }} failed unexpectedly while it served",
    finding: "service-failures",
    problem: "connections or streams failed unexpectedly",
    fix: "Please report the line of the log with level error.",
    sinceStart: true,
  },
  {
    metrics: ["latchkey_call_seconds"],
    condition: { kind: "slow", above: 0.25, where: { method: ["KeysService/VerifyKey"] } },
    meaning: "Verifications may take longer than their callers wait.",
    runbook: "verifications-are-slow",
    alert: ["LatchkeyVerificationsSlow", "warning", "5m"],
    summary: 'Verifications of {{ $labels.instance }} are slow: one in a hundred takes {{ printf "%.2f" $value }} s',
  },
  {
    metrics: ["latchkey_batch_seconds"],
    condition: { kind: "slow", above: 0.2, by: ["batcher"] },
    meaning: "The store is slow. By default, callers get 503 after 0.235 s.",
    runbook: "verifications-are-slow",
    alert: ["LatchkeyBatchesSlow", "warning", "5m"],
    summary:
      'The store of {{ $labels.instance }} is slow: one batch in a hundred of {{ $labels.batcher }} takes {{ printf "%.2f" $value }} s',
  },
  {
    metrics: ["latchkey_event_loop_delay_seconds"],
    condition: { kind: "slow", above: 0.05, by: ["worker"] },
    meaning: "The process has more work than one core does: calls wait that long before they are looked at.",
    runbook: "verifications-are-slow",
    alert: ["LatchkeyEventLoopDelayed", "warning", "5m"],
    summary: 'The process {{ $labels.worker }} of {{ $labels.instance }} is {{ printf "%.2f" $value }} s late',
    finding: "service-event-loop-late",
    problem: "the event loop of process {worker} was late",
    fix: "Start further replicas, or set LATCHKEY_WORKERS to the number of cores; top -H -p PID shows what takes the time.",
  },
  {
    metrics: ["latchkey_rate_limit_sync_up", "latchkey_key_changes_up"],
    condition: { kind: "zero" },
    meaning:
      "Local limits count on each replica by itself, so that up to replicas × limit pass, and deleted keys are refused everywhere after two seconds only.",
    runbook: "limits-do-not-hold",
    alert: ["LatchkeyRedisDown", "warning", "1m"],
    summary: "{{ $labels.instance }} has lost touch with the other replicas",
    // Only with Redis: an edge without it synchronises windows over its coordinators, and lacks the second metric.
    finding: "service-redis-away",
    problem: "Redis cannot be used",
    fix: "latchkey doctor with the service's own settings, on its machine, says why Redis cannot be used; the log has the reason too.",
  },
  {
    metrics: ["latchkey_unsettled_denials_total"],
    condition: { kind: "grown", within: "15m" },
    meaning:
      "Strict limits refused verifications while other replicas held permits that did not come back: a replica or region hangs, or is cut off. Nothing was let through too much.",
    runbook: "limits-do-not-hold",
    alert: ["LatchkeyUnsettledDenials", "warning"],
    summary: "{{ $labels.instance }} refuses keys whose permits are elsewhere",
    finding: "service-strict-unsettled",
    problem: "verifications were refused while others held permits",
    fix: "Look for a replica or a region that is cut off or very slow: latchkey_coordinator_up and latchkey_coordinator_path_seconds of each edge.",
  },
  {
    metrics: ["latchkey_ledger_clock_jumps_total"],
    condition: { kind: "grown", within: "1h", by: ["direction"] },
    meaning: "Limits and refills go by that clock: windows ended too early or too late.",
    runbook: "limits-do-not-hold",
    alert: ["LatchkeyLedgerClockJumped", "warning"],
    summary: "The ledger's clock jumped {{ $labels.direction }}, seen by {{ $labels.instance }}",
    finding: "service-clock-jumped",
    problem: "times the ledger's clock jumped since the start",
    fix: "chronyc tracking on the database's machine; let the time service slew, not step: docs/operations.md#clocks.",
    sinceStart: true,
  },
  {
    metrics: ["latchkey_root_key_failures_total"],
    condition: { kind: "grown", within: "5m", above: 20 },
    meaning: "Somebody guesses root keys, or a client has a revoked one. The log has their addresses.",
    runbook: "root-keys",
    alert: ["LatchkeyRootKeysGuessed", "warning"],
    summary: '{{ printf "%.0f" $value }} wrong root keys were sent to {{ $labels.instance }} in 5 minutes',
  },
  {
    metrics: ["latchkey_internal_refused_total"],
    condition: { kind: "grown", within: "5m" },
    meaning:
      "An edge or a scraper has a wrong LATCHKEY_INTERNAL_SECRET or uses another name, or a stranger reaches the port.",
    runbook: "tls-of-the-internal-port",
    alert: ["LatchkeyInternalPortRefused", "warning"],
    summary: "Requests to the internal port of {{ $labels.instance }} had no secret",
  },
  {
    metrics: ["latchkey_certificate_expires_seconds"],
    condition: { kind: "ends", withinMs: certificateSoonMs },
    meaning: "Clients and edges refuse an expired one. New files are used within 10 seconds.",
    runbook: "tls",
    alert: ["LatchkeyCertificateExpires", "warning"],
    summary:
      "The certificate of the {{ $labels.port }} port of {{ $labels.instance }} expires in {{ humanizeDuration $value }}",
  },
  {
    metrics: ["process_open_fds"],
    condition: { kind: "share", above: 0.8, of: "process_max_fds" },
    meaning: "Each connection takes a file. When none is left, new connections fail. Raise ulimit -n.",
    finding: "service-open-files",
    problem: "files are open",
    fix: "ulimit -n 65536 before the start (systemd: LimitNOFILE=65536), or a lower LATCHKEY_CONNECTIONS_MAX.",
  },
];
