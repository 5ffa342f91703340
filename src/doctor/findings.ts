/** `error`: it does not start, or loses data or availability. `warning`: it works, and should be changed. `note`: to know. */
export const severities = ["error", "warning", "note"] as const;

export type Severity = (typeof severities)[number];

/**
 * Everything that doctor can find, by how bad it is: why it matters. `docs/doctor.md` is tested against this table. What
 * is wrong and what to type depend on the case: the checks say that.
 */
const reasons = {
  error: {
    "settings-invalid": "The start is refused until every setting is valid.",
    "data-folder-unusable": "The embedded store is in it. The start is refused.",
    "data-folder-copied": "The start is refused: a second ledger would count the same uses again.",
    "store-empty": "The start is refused, so that lost keys are an outage and not invalid.",
    "data-file-missing": "There was a data file. A start is refused, so that lost keys are not taken for none.",
    "data-file-damaged": "Nothing is served from a damaged file: callers get 503.",
    "disk-full": "The embedded store cannot commit without room: counted keys and changes get 503.",
    "schema-too-new": "An older version may not understand the data. The start is refused.",
    "copy-unfinished": "The database has a part of the keys only. It is not served.",
    "postgres-unreachable":
      "Without its database the service is not ready, and answers 503 for everything that is not in memory.",
    "postgres-refused": "Waiting does not help: the start ends with this message.",
    "postgres-connections-exhausted": "The service cannot connect, and does not become ready.",
    "postgres-read-only": "Nothing can be counted or changed on a server that takes no writes.",
    "postgres-standby-away": "Every commit waits for the standby: counted keys and changes get 503.",
    "postgres-version": "Statements of Latchkey need Postgres 13 or newer; it is tested on 15.",
    "postgres-commits-unsafe": "A power cut can lose acknowledged uses, or damage the whole database.",
    "postgres-isolation":
      "Behind a pooler by transaction the default of the role counts, and the start is refused with any but READ COMMITTED.",
    "postgres-privileges": "A start makes and changes tables. Without the rights to do so it is refused.",
    "coordinator-unreachable": "An edge reaches keys and counters over its coordinators only.",
    "coordinator-refused": "The coordinator lets nobody in without its secret: to this edge it is away.",
    "coordinator-untrusted": "An edge sends no secret to a coordinator that it cannot trust: to it, that one is away.",
    "coordinator-without-ledger": "Without its database a coordinator can count and change nothing.",
    "certificate-unusable": "The start is refused; a running service keeps its old certificate.",
    "certificate-expired": "Clients refuse it.",
    "certificate-not-yet-valid": "Clients refuse it until then. Often a clock is wrong.",
    "port-unusable": "The start is refused, because it cannot listen there.",
    "check-timed-out": "What does not answer a question in time does not answer the service either.",
    "check-failed": "The check itself failed, so it says nothing. It may be a fault of ours.",
    "service-unreachable": "Callers do not reach it either.",
    "service-untrusted": "Clients that check certificates refuse it.",
    "service-not-ready": "Load balancers send no requests to it.",
    "service-undecided": "Callers get no decision: 503, or 500 for a fault of ours.",
    "service-shedding": "There is no room for callers: they get 503 immediately.",
    "service-database-away": "Nothing can be counted or changed; keys are served from memory for a minute.",
    "service-data-file-down": "Nothing can be counted or changed; keys are served from memory only.",
    "service-change-feed-away": "Revoked keys may still be served from memory.",
    "service-coordinator-away": "The edge has one coordinator less; without any, nothing is counted.",
    "service-ledger-away": "Counted keys and strict limits get 503, as long as no other coordinator has its ledger.",
    "service-windows-full": "Keys with rate limits get 503 until a window ends.",
  },
  warning: {
    "settings-unknown": "A misspelt setting is ignored, and its default counts.",
    "file-open-to-others": "Every user of this machine can read or replace it: secrets, root keys and the data itself.",
    "data-folder-unwritable":
      "Open windows of local limits are not saved over a restart, and no root key can be generated.",
    "root-key-file-missing": "If nobody has kept the root key, nobody can manage keys.",
    "disk-low": "When the disk is full, nothing can be written: keys, a generated root key, saved windows.",
    "postgres-connections-few":
      "The service has fewer connections than it should: look-ups and changes wait for them, and further replicas do not become ready.",
    "postgres-synchronous-commit-off":
      "Latchkey turns it on for its own transactions. What others write, for example a restored dump, can be lost in a crash or a failover.",
    "local-limits-apart":
      "Each replica counts local limits by itself: callers can use each limit once on every replica.",
    "spending-ahead":
      "What such a counter spends until then counts into that hour: bills of the hours before it lack it.",
    "postgres-clock": "Refills and strict limits go by the database's clock, expiry of keys by this one's.",
    "redis-unreachable": "Each replica counts local limits by itself; deleted keys are refused a second later.",
    "redis-refused": "As if Redis were away: each replica counts local limits by itself.",
    "redis-cluster-mismatch": "Redis refuses most windows: each replica counts local limits by itself.",
    "redis-eviction": "A full Redis then forgets windows that are in use, and replicas let more pass.",
    "redis-memory-low": "A full Redis refuses or forgets windows, and replicas let more pass.",
    "coordinator-far": "Longer paths than 0.41 s are not tested: callers may get 503.",
    "certificate-ends-soon": "Clients refuse it afterwards.",
    "certificate-chain": "Clients that do not know the authorities in between refuse it.",
    "certificate-names": "Clients refuse a certificate that does not name the address they connect to.",
    "open-files-low": "Each connection takes a file. When none is left, new connections fail.",
    "service-clock": "Expiry of keys goes by the service's clock.",
    "internal-port-unreachable": "Without metrics doctor sees only what callers see.",
    "internal-port-refused": "Without metrics doctor sees only what callers see.",
    "service-event-loop-late": "Every call waits that long before it is looked at.",
    "service-redis-away": "Each replica counts local limits by itself; deleted keys are refused a second later.",
    "service-strict-unsettled": "Strict limits refuse callers while other replicas hold permits that do not come back.",
    "service-clock-jumped": "Limits and refills go by that clock.",
    "service-failures": "A fault of ours.",
    "service-open-files": "Each connection takes a file. When none is left, new connections fail.",
  },
  note: {
    "data-file-unchecked": "Damage in the file would not have been found.",
    "schema-behind": "The next start applies the missing migrations and is ready afterwards.",
    "postgres-pooler": "A pooler works, and has bounds of its own. Latchkey needs none.",
    "service-shed-earlier": "There was no room for some callers since the start: they got 503.",
  },
} as const satisfies Record<Severity, Record<string, string>>;

export type FindingId = { [Grade in Severity]: keyof (typeof reasons)[Grade] }[Severity];

export const findingKinds = Object.fromEntries(
  severities.flatMap((severity) => Object.entries(reasons[severity]).map(([id, why]) => [id, { severity, why }])),
) as Readonly<Record<FindingId, Pick<Finding, "severity" | "why">>>;

export interface Finding {
  readonly id: FindingId;
  readonly severity: Severity;
  /** The check that found it. */
  readonly area: string;
  /** What is wrong, with names and numbers, never a secret. */
  readonly problem: string;
  readonly why: string;
  /** What to type, or to set. */
  readonly fix: string;
}

/** What a diagnosis comes to: its worst finding. */
export function worstOf(findings: readonly Finding[]): Severity | undefined {
  return severities.find((severity) => findings.some((finding) => finding.severity === severity));
}
