/** `error`: it does not start, or loses data or availability. `warning`: it works, and should be changed. `note`: to know. */
export type Severity = "error" | "warning" | "note";

/**
 * Everything that doctor can find: how bad it is, and why it matters. `docs/doctor.md` is tested against this table. What
 * is wrong and what to type depend on the case: the checks say that.
 */
export const findingKinds = {
  "settings-invalid": ["error", "The start is refused until every setting is valid."],
  "settings-unknown": ["warning", "A misspelt setting is ignored, and its default counts."],
  "file-open-to-others": [
    "warning",
    "Every user of this machine can read or replace it: secrets, root keys and the data itself.",
  ],
  "data-folder-unusable": ["error", "The embedded store is in it. The start is refused."],
  "data-folder-unwritable": [
    "warning",
    "Open windows of local limits are not saved over a restart, and no root key can be generated.",
  ],
  "data-folder-copied": ["error", "The start is refused: a second ledger would count the same uses again."],
  "store-empty": ["error", "The start is refused, so that lost keys are an outage and not invalid."],
  "data-file-missing": [
    "error",
    "There was a data file. A start is refused, so that lost keys are not taken for none.",
  ],
  "data-file-damaged": ["error", "Nothing is served from a damaged file: callers get 503."],
  "data-file-unchecked": ["note", "Damage in the file would not have been found."],
  "disk-full": ["error", "The embedded store cannot commit without room: counted keys and changes get 503."],
  "disk-low": ["warning", "When the disk is full, nothing can be written: keys, a generated root key, saved windows."],
  "schema-too-new": ["error", "An older version may not understand the data. The start is refused."],
  "schema-behind": ["note", "The next start applies the missing migrations and is ready afterwards."],
  "copy-unfinished": ["error", "The database has a part of the keys only. It is not served."],
  "postgres-unreachable": [
    "error",
    "Without its database the service is not ready, and answers 503 for everything that is not in memory.",
  ],
  "postgres-refused": ["error", "Waiting does not help: the start ends with this message."],
  "postgres-connections-exhausted": ["error", "The service cannot connect, and does not become ready."],
  "postgres-connections-few": [
    "warning",
    "Under load the service finds no further connection: look-ups and changes wait, and further replicas do not become ready.",
  ],
  "postgres-read-only": ["error", "Nothing can be counted or changed on a server that takes no writes."],
  "postgres-standby-away": ["error", "Every commit waits for the standby: counted keys and changes get 503."],
  "postgres-version": ["error", "Statements of Latchkey need Postgres 13 or newer; it is tested on 15."],
  "postgres-commits-unsafe": ["error", "A power cut can lose acknowledged uses, or damage the whole database."],
  "postgres-synchronous-commit-off": [
    "warning",
    "Latchkey turns it on for its own transactions. What others write, for example a restored dump, can be lost in a crash or a failover.",
  ],
  "local-limits-apart": [
    "warning",
    "Each replica counts local limits by itself: callers can use each limit once on every replica.",
  ],
  "postgres-pooler": ["note", "A pooler works, and has bounds of its own. Latchkey needs none."],
  "postgres-isolation": [
    "error",
    "Behind a pooler by transaction the default of the role counts, and the start is refused with any but READ COMMITTED.",
  ],
  "postgres-privileges": ["error", "A start makes and changes tables. Without the rights to do so it is refused."],
  "postgres-clock": ["warning", "Refills and strict limits go by the database's clock, expiry of keys by this one's."],
  "redis-unreachable": [
    "warning",
    "Each replica counts local limits by itself; deleted keys are refused a second later.",
  ],
  "redis-refused": ["warning", "As if Redis were away: each replica counts local limits by itself."],
  "redis-cluster-mismatch": ["warning", "Redis refuses most windows: each replica counts local limits by itself."],
  "redis-eviction": ["warning", "A full Redis then forgets windows that are in use, and replicas let more pass."],
  "redis-memory-low": ["warning", "A full Redis refuses or forgets windows, and replicas let more pass."],
  "coordinator-unreachable": ["error", "An edge reaches keys and counters over its coordinators only."],
  "coordinator-refused": ["error", "The coordinator lets nobody in without its secret: to this edge it is away."],
  "coordinator-untrusted": [
    "error",
    "An edge sends no secret to a coordinator that it cannot trust: to it, that one is away.",
  ],
  "coordinator-without-ledger": ["error", "Without its database a coordinator can count and change nothing."],
  "coordinator-far": ["warning", "Longer paths than 0.41 s are not tested: callers may get 503."],
  "certificate-unusable": ["error", "The start is refused; a running service keeps its old certificate."],
  "certificate-expired": ["error", "Clients refuse it."],
  "certificate-not-yet-valid": ["error", "Clients refuse it until then. Often a clock is wrong."],
  "certificate-ends-soon": ["warning", "Clients refuse it afterwards."],
  "certificate-chain": ["warning", "Clients that do not know the authorities in between refuse it."],
  "certificate-names": ["warning", "Clients refuse a certificate that does not name the address they connect to."],
  "port-unusable": ["error", "The start is refused, because it cannot listen there."],
  "open-files-low": ["warning", "Each connection takes a file. When none is left, new connections fail."],
  "check-timed-out": ["error", "What does not answer a question in time does not answer the service either."],
  "check-failed": ["error", "The check itself failed, so it says nothing. It may be a fault of ours."],
  "service-unreachable": ["error", "Callers do not reach it either."],
  "service-untrusted": ["error", "Clients that check certificates refuse it."],
  "service-not-ready": ["error", "Load balancers send no requests to it."],
  "service-clock": ["warning", "Expiry of keys goes by the service's clock."],
  "internal-port-unreachable": ["warning", "Without metrics doctor sees only what callers see."],
  "internal-port-refused": ["warning", "Without metrics doctor sees only what callers see."],
  "service-undecided": ["error", "Callers get no decision: 503, or 500 for a fault of ours."],
  "service-shedding": ["error", "There is no room for callers: they get 503 at once."],
  "service-shed-earlier": ["note", "There was no room for some callers since the start: they got 503."],
  "service-event-loop-late": ["warning", "Every call waits that long before it is looked at."],
  "service-database-away": ["error", "Nothing can be counted or changed; keys are served from memory for a minute."],
  "service-data-file-down": ["error", "Nothing can be counted or changed; keys are served from memory only."],
  "service-change-feed-away": ["error", "Revoked keys may still be served from memory."],
  "service-redis-away": [
    "warning",
    "Each replica counts local limits by itself; deleted keys are refused a second later.",
  ],
  "service-coordinator-away": ["error", "The edge has one coordinator less; without any, nothing is counted."],
  "service-ledger-away": [
    "error",
    "Counted keys and strict limits get 503, as long as no other coordinator has its ledger.",
  ],
  "service-strict-unsettled": [
    "warning",
    "Strict limits refuse callers while other replicas hold permits that do not come back.",
  ],
  "service-windows-full": ["error", "Keys with rate limits get 503 until a window ends."],
  "service-clock-jumped": ["warning", "Limits and refills go by that clock."],
  "service-failures": ["warning", "A fault of ours."],
  "service-open-files": ["warning", "Each connection takes a file. When none is left, new connections fail."],
} as const satisfies Record<string, readonly [Severity, string]>;

export type FindingId = keyof typeof findingKinds;

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
  const order: readonly Severity[] = ["error", "warning", "note"];
  return order.find((severity) => findings.some((finding) => finding.severity === severity));
}
