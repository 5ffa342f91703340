import { AggregatorRegistry, Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import { createTally, TalliedHistogram, type ValuesOfLabel } from "./tallies.ts";

/** The numbers of a process, to count, to read and to render. */
export type MetricsRegistry = ReturnType<typeof createMetrics>;

/** What parts of the service count with. */
export type Metrics = Omit<MetricsRegistry, "addProcessMetrics" | "contentType" | "snapshot" | "render">;

/**
 * How a request of HTTP/1.1 was read: by hand; or by Node, which has the connection since a request with an unsupported path,
 * header or body, or one whose end is for Node to find; or because Node reads everything.
 */
export type Http1ReadBy = Parameters<Metrics["http1Request"]>[0];

export type MetricsSnapshot = readonly object[];

/** Renders the numbers of several processes together: those with the same name and labels are added. */
export function renderSum(snapshots: readonly MetricsSnapshot[]): Promise<string> {
  return sum(snapshots).metrics();
}

/** What these have counted, without what they only measured. */
export function sumOfCounters(snapshots: readonly MetricsSnapshot[]): Promise<MetricsSnapshot> {
  const counters = snapshots.map((snapshot) =>
    snapshot.filter((metric) => "type" in metric && metric.type !== "gauge"),
  );
  return sum(counters).getMetricsAsJSON();
}

function sum(snapshots: readonly MetricsSnapshot[]): Registry {
  // For all metrics, even those that only one process has: the library's own merging leaves some out.
  const summed = snapshots.map((snapshot) => snapshot.map((metric) => ({ ...metric, aggregator: "sum" })));
  return AggregatorRegistry.aggregate(summed);
}

const callBuckets = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5];
/** Timers are exact to a millisecond. */
const delayBuckets = [0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5];
const batchBuckets = [1, 2, 5, 10, 20, 50, 100, 200, 500];

/** The usual ones. Others begin with their first event. */
const refusalCodes: readonly string[] = [
  "BAD_REQUEST",
  "NOT_FOUND",
  "METHOD_NOT_ALLOWED",
  "PAYLOAD_TOO_LARGE",
  "UNSUPPORTED_MEDIA_TYPE",
  "REQUEST_HEADER_FIELDS_TOO_LARGE",
];
const noneYet: readonly string[] = [];

type Labels = Readonly<Record<string, string>>;

/**
 * What this process counts about itself. No label contains a key, an id or anything else that a caller chose. Gauges and
 * process metrics have `ownLabels`: a worker's are not added to those of others.
 */
export function createMetrics(ownLabels: Labels = {}) {
  const registry = new Registry();
  const registers = [registry];
  const tally = <Value extends string>(name: string, help: string, values: ValuesOfLabel<Value>) =>
    createTally(registry, { name, help, values });
  const count = (name: string, help: string) => {
    const counter = new Counter({ name, help, registers });
    return (events = 1) => counter.inc(events);
  };
  const calls = new TalliedHistogram(registry, {
    name: "latchkey_call_seconds",
    help: "Time from a call's last byte to its answer, by method, protocol and outcome.",
    labelNames: ["method", "protocol", "code"],
    buckets: callBuckets,
  });
  const histogram = (name: string, help: string, label: string, buckets: number[]) =>
    new Histogram({ name, help, labelNames: [label], buckets, registers });
  const batchItems = histogram("latchkey_batch_items", "Items committed together.", "batcher", batchBuckets);
  const batchSeconds = histogram("latchkey_batch_seconds", "Time a batch took to commit.", "batcher", callBuckets);
  const delayHelp = "How late the event loop of each process got to what was due, sampled every 20 ms.";
  const eventLoopDelay = histogram("latchkey_event_loop_delay_seconds", delayHelp, "worker", delayBuckets);
  const gauges = new Map<string, { labels: Labels; read: () => number }[]>();
  return {
    verified: tally("latchkey_verifications_total", "Verifications by outcome.", { code: noneYet }),
    /** A call of any method ended. */
    called: (method: string, protocol: string, code: string, seconds: number) =>
      calls.observe(method, protocol, code, seconds),
    batchCommitted(batcher: string, items: number, seconds: number) {
      batchItems.observe({ batcher }, items);
      batchSeconds.observe({ batcher }, seconds);
    },
    /** A ledger had to do more than send a batch and read its reply. */
    ledger: tally(
      "latchkey_ledger_events_total",
      "Batches of uses or permits sent again, recovered after a lost reply, split for a bad row, sent around locked rows, answered with numbers that cannot be (a mistake in the service), or given up.",
      { event: ["retried", "recovered", "split", "locked", "mismatch", "given-up"] },
    ),
    /** The ledger's clock jumped against this replica's monotonic one: an alarm. */
    ledgerClockJumped: tally(
      "latchkey_ledger_clock_jumps_total",
      "Jumps of the ledger's clock by more than 5 s against this replica's monotonic one.",
      { direction: ["forward", "backward"] },
    ),
    /** Uses were settled on a counter that was refilled too early, by a clock that was ahead: an alarm. */
    refillAhead: count(
      "latchkey_refills_ahead_total",
      "Charges of counters that were refilled too early and will miss their next refill: see the operations guide.",
    ),
    keyCache: tally(
      "latchkey_key_cache_total",
      "Key look-ups by what the cache did: hit, miss, or shared (joined a look-up that was not sent yet).",
      { event: ["hit", "miss", "shared"] },
    ),
    /** A verification was rejected because no rate-limit window is free for its API: an alarm. */
    windowsFull: count(
      "latchkey_rate_limit_windows_full_total",
      "Verifications answered 503 because no rate-limit window was free for their API. Raise LATCHKEY_WINDOWS_MAX or LATCHKEY_FREE_WINDOWS_MAX.",
    ),
    /** Rate-limit windows were reported to the other replicas, or could not be. */
    windowsSynced: tally(
      "latchkey_rate_limit_windows_synced_total",
      "Rate-limit windows reported to the other replicas: merged, or failed (they are reported again).",
      { event: ["merged", "failed"] },
    ),
    /** At the coordinator: permits granted, permits returned, and requests to replicas to return permits. */
    permits: tally(
      "latchkey_permits_total",
      "Permits of strict rate limits granted and returned, and replicas asked to return theirs.",
      { event: ["granted", "returned", "recalled"] },
    ),
    /** Verifications denied by a strict limit while other replicas held permits that came back too late, or never. */
    deniedUnsettled: count(
      "latchkey_unsettled_denials_total",
      "Verifications turned away by a strict limit while others held permits that did not come back in time.",
    ),
    /** A handshake of TLS failed. */
    handshakeFailed: tally(
      "latchkey_tls_handshakes_failed_total",
      "Connections whose handshake of TLS failed: a client that trusts another CA, is too old, or speaks no TLS.",
      { port: ["public", "internal"] },
    ),
    /** A request to the internal listener had neither the shared secret nor a client certificate. */
    internalRefused: count(
      "latchkey_internal_refused_total",
      "Requests to the internal listener without the shared secret or a client certificate, or for the name of another host.",
    ),
    /** A change of a key was sent to the other replicas, could not be sent, or was received. */
    keyChange: tally(
      "latchkey_key_changes_total",
      "Changes of keys between replicas: announced, unsent (then only the change feed reports them), heard.",
      { event: ["announced", "unsent", "heard"] },
    ),
    /** Load shedding: a call, connection or stream was rejected before any work, because there was no room. An alarm. */
    shed: tally(
      "latchkey_shed_total",
      "Calls, connections and HTTP/2 streams turned away as too many were waiting or open.",
      { what: ["call", "connection", "stream"] },
    ),
    /** An HTTP/1.1 request was read. */
    http1Request: tally(
      "latchkey_http1_requests_total",
      "Requests of HTTP/1.1 by how they were read: by hand, or by Node and why.",
      { way: ["by_hand", "node_path", "node_head", "node_body", "node_framing", "node_only"] },
    ),
    /** A request to the public port was answered with an error before it became a call, so `called` does not count it. */
    requestRefused: tally(
      "latchkey_requests_refused_total",
      "Requests answered with an error before they became a call of a method, such as those for an unknown path.",
      { code: refusalCodes },
    ),
    /** An exception while a connection or stream was served; it was destroyed. A bug of ours: an alarm. */
    servingFailed: count(
      "latchkey_serving_failures_total",
      "Connections and streams destroyed because serving them failed unexpectedly. Should stay 0.",
    ),
    /** How late a timer was: everything else that was due in this process was as late. */
    eventLoopDelayed: (worker: string, seconds: number) => eventLoopDelay.observe({ worker }, seconds),
    /** A root key was presented and is not valid. */
    rootKeyRefused: count("latchkey_root_key_failures_total", "Calls with a root key that is not valid."),
    /** Spans were sent to the collector, could not be sent, or found no room in the queue. */
    spans: tally(
      "latchkey_trace_spans_total",
      "Spans by what became of them: exported, failed (the collector did not take them) or dropped (the queue was full).",
      { event: ["exported", "failed", "dropped"] },
    ),
    /** Samples a value whenever the metrics are read. Call it once per name and labels; one name has one set of labels. */
    gauge(name: string, help: string, read: () => number, given?: Labels) {
      const labels = { ...ownLabels, ...given };
      const samples = gauges.get(name) ?? [];
      samples.push({ labels, read });
      if (samples.length > 1) return;
      gauges.set(name, samples);
      new Gauge({
        name,
        help,
        labelNames: Object.keys(labels),
        registers,
        collect() {
          for (const sample of samples) this.set(sample.labels, sample.read());
        },
      });
    },
    /** Adds the usual metrics of every process: memory, CPU, event loop, garbage collection. */
    addProcessMetrics: () => collectDefaultMetrics({ register: registry, labels: ownLabels }),
    contentType: registry.contentType,
    /** All current numbers, as plain data that can be added to those of other processes. */
    snapshot: (): Promise<MetricsSnapshot> => registry.getMetricsAsJSON(),
    render: () => registry.metrics(),
  };
}
