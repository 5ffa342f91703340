import { hostname } from "node:os";
import type { Ambient } from "./ambient.ts";
import { createPacedWarning } from "./paced-lines.ts";
import type { TracingOptions } from "./tracing-options.ts";

/** A finished span of a server. Ids are in hexadecimal. */
export interface Span {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string | undefined;
  readonly traceState: string | undefined;
  readonly name: string;
  readonly startUnixMs: number;
  readonly endUnixMs: number;
  readonly isError: boolean;
  /** Those that are undefined are left out. Never a secret. */
  readonly attributes: Readonly<Record<string, string | number | undefined>>;
}

/** Further spans are dropped. Each takes about 1 KB. */
const queueMax = 4096;
const batchMax = 512;
const exportEveryMs = 1000;
const afterFailureMs = 5000;
const exportWithinMs = 5000;
const stopWithinMs = 2000;

/**
 * Sends spans to a collector, in JSON, one batch at a time: a slow collector fills the queue and delays no call. A batch
 * that fails is not sent again. What is lost is counted.
 */
export class OtlpExporter {
  readonly #options: TracingOptions;
  readonly #metrics: Ambient["metrics"];
  readonly #warn: ReturnType<typeof createPacedWarning>;
  readonly #queue: string[] = [];
  readonly #stopped = new AbortController();
  #running: Promise<void> | undefined;
  #wake = () => {};
  #isFailing = false;
  #isStopping = false;

  constructor(options: TracingOptions, deps: Pick<Ambient, "clock" | "log" | "metrics">) {
    this.#options = options;
    this.#metrics = deps.metrics;
    this.#warn = createPacedWarning(deps, "traces could not be exported");
  }

  add(span: Span): void {
    if (this.#queue.length >= queueMax) {
      this.#metrics.spans("dropped", 1);
      return;
    }
    // Encoded now and not with its batch: 512 at once would hold up the calls of that turn.
    this.#queue.push(encodeSpan(span));
    if (this.#queue.length >= batchMax && !this.#isFailing) this.#wake();
    this.#running ??= this.#run();
  }

  /** Sends what is left, for two seconds at most. */
  async stop(withinMs = stopWithinMs): Promise<void> {
    this.#isStopping = true;
    this.#wake();
    const giveUp = setTimeout(() => this.#stopped.abort(), withinMs);
    await this.#running;
    clearTimeout(giveUp);
  }

  async #run(): Promise<void> {
    while (this.#queue.length > 0) {
      if (!this.#isStopping && (this.#isFailing || this.#queue.length < batchMax)) await this.#pause();
      const batch = this.#queue.splice(0, batchMax);
      const problem = await this.#post(this.#bodyOf(batch));
      this.#isFailing = problem !== undefined;
      this.#metrics.spans(problem === undefined ? "exported" : "failed", batch.length);
      if (problem !== undefined) this.#warn(() => ({ problem, spans: batch.length }));
    }
    this.#running = undefined;
  }

  #pause(): Promise<void> {
    return new Promise((resolve) => {
      setTimeout(resolve, this.#isFailing ? afterFailureMs : exportEveryMs).unref();
      this.#wake = resolve;
    });
  }

  #bodyOf(batch: readonly string[]): string {
    const names = { "service.name": this.#options.serviceName, "service.instance.id": `${hostname()}:${process.pid}` };
    const resource = JSON.stringify({ attributes: toKeyValues(names) });
    return `{"resourceSpans":[{"resource":${resource},"scopeSpans":[{"scope":{"name":"latchkey"},"spans":[${batch}]}]}]}`;
  }

  /** Answers what went wrong: a status or a code, never a message, which may repeat a header. */
  async #post(body: string): Promise<string | undefined> {
    const headers = { ...this.#options.headers, "content-type": "application/json" };
    const signal = AbortSignal.any([this.#stopped.signal, AbortSignal.timeout(exportWithinMs)]);
    try {
      // A redirect is not followed: it could carry the headers to another host. The answer's body is not read, however long.
      const answer = await fetch(this.#options.url, { method: "POST", headers, body, signal, redirect: "error" });
      await answer.body?.cancel();
      return answer.ok ? undefined : `status ${answer.status}`;
    } catch (error) {
      const { cause, name } = error as Error & { cause?: { code?: string } };
      return cause?.code ?? name;
    }
  }
}

/** The JSON of OTLP: ids in hexadecimal, 64-bit numbers as texts, enums as numbers (kind 2: server, status 2: error). */
function encodeSpan({ startUnixMs, endUnixMs, isError, attributes, ...named }: Span): string {
  const times = { startTimeUnixNano: nanos(startUnixMs), endTimeUnixNano: nanos(endUnixMs) };
  const status = isError ? { code: 2 } : undefined;
  return JSON.stringify({ ...named, kind: 2, ...times, attributes: toKeyValues(attributes), status });
}

function toKeyValues(attributes: Span["attributes"]): object[] {
  const pairs: object[] = [];
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "number") pairs.push({ key, value: { intValue: String(value) } });
    else if (value !== undefined) pairs.push({ key, value: { stringValue: value } });
  }
  return pairs;
}

/** A number has no room for the nanoseconds since 1970. */
function nanos(unixMs: number): string {
  const wholeMs = Math.floor(unixMs);
  return `${wholeMs}${String(Math.floor((unixMs - wholeMs) * 1e6)).padStart(6, "0")}`;
}
