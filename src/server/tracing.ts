import type { TracingOptions } from "../ambient/tracing-options.ts";
import { parseOtlpHeaders } from "../config/parse-setting.ts";
import type { Settings } from "../config/settings.ts";

/** Undefined if no collector is set: nothing is traced then. */
export function tracingOf(settings: Settings): TracingOptions | undefined {
  const { otlpEndpoint, otlpTracesEndpoint, otlpHeaders, serviceName, traceRatio } = settings;
  const url = otlpTracesEndpoint || (otlpEndpoint && `${otlpEndpoint}/v1/traces`);
  if (url === "") return undefined;
  const headers = otlpHeaders ? parseOtlpHeaders(otlpHeaders.reveal()) : {};
  return { url, headers, serviceName, sampleRatio: traceRatio };
}
