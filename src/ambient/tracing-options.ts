/** Which calls are traced, and where their spans go. Plain data. */
export interface TracingOptions {
  /** The URL of a collector that takes OTLP over HTTP, such as `http://127.0.0.1:4318/v1/traces`. */
  readonly url: string;
  /** Sent with every export. They may hold a secret. */
  readonly headers: Readonly<Record<string, string>>;
  readonly serviceName: string;
  /** The share of calls without a parent that get a span, 0 to 1. */
  readonly sampleRatio: number;
}
