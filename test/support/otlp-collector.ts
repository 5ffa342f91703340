import { deepStrictEqual } from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { Readable } from "node:stream";
import { fromJson, type JsonValue, toJson } from "@bufbuild/protobuf";
import { npmPackage } from "./npm-programs.ts";
import { atTestEnd } from "./test-end.ts";
import { compileProtos } from "./test-protos.ts";

/** A span as it arrived. */
export interface CollectedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string | undefined;
  readonly traceState: string | undefined;
  readonly name: string;
  readonly kind: string;
  readonly startNanos: bigint;
  readonly endNanos: bigint;
  readonly isError: boolean;
  readonly attributes: Readonly<Record<string, string>>;
  readonly resource: Readonly<Record<string, string>>;
}

interface ReceivedRequest {
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  /** Of the exporter's end of the connection. */
  readonly port: number | undefined;
}

export interface OtlpCollector {
  /** As OTEL_EXPORTER_OTLP_ENDPOINT has it. */
  readonly endpoint: string;
  /** What came, undecoded. */
  readonly requests: ReceivedRequest[];
  /** Of all requests so far, in the order of their start. Throws if one of them is not what OpenTelemetry's types allow. */
  spans(): CollectedSpan[];
  /** What is answered; 0: nothing. */
  status: number;
  /** Whether an answer has no end. */
  isEndless: boolean;
  close(): Promise<void>;
}

/** Takes what an exporter of OTLP over HTTP sends; ends with the test, unless told otherwise. */
export async function startCollector(atEnd: (undo: () => unknown) => void = atTestEnd): Promise<OtlpCollector> {
  const requests: OtlpCollector["requests"] = [];
  const server = createServer(async (req, res) => {
    const { url = "", headers, socket } = req;
    const port = socket.remotePort;
    requests.push({ url, headers, port, body: (await req.toArray()).join("") });
    if (collector.status === 0) return;
    res.writeHead(collector.status, { "content-type": "application/json" });
    if (collector.isEndless) Readable.from(endlessly(Buffer.alloc(2 ** 16))).pipe(res);
    else res.end("{}");
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const collector: OtlpCollector = {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    spans: () => requests.flatMap(({ body }) => decode(body)).sort((a, b) => Number(a.startNanos - b.startNanos)),
    status: 200,
    isEndless: false,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  atEnd(() => collector.close());
  return collector;
}

function* endlessly(chunk: Buffer): Generator<Buffer> {
  for (;;) yield chunk;
}

/** The last version that holds OpenTelemetry's own proto files. */
const packageOfProtos = ["@opentelemetry/otlp-grpc-exporter-base", "0.38.0"] as const;

let compiled: ReturnType<typeof compileProtos> | undefined;

/** Decodes with OpenTelemetry's own types: a field that they do not have is an error. */
function decode(body: string): CollectedSpan[] {
  compiled ??= compileProtos(join(npmPackage(...packageOfProtos), packageOfProtos[0], "build/protos"));
  const { registry, found } = compiled;
  const schema = found(registry.getMessage("opentelemetry.proto.collector.trace.v1.ExportTraceServiceRequest"));
  const json = JSON.parse(body, hexToBase64) as JsonValue;
  const message = fromJson(schema, json);
  // OTLP takes less than protobuf's JSON does: neither snake_case nor enums by name.
  deepStrictEqual(json, toJson(schema, message, { enumAsInteger: true }));
  const { resourceSpans } = toJson(schema, message) as unknown as ExportedJson;
  return resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ spans }) =>
      spans.map((span) => ({
        traceId: base64ToHex(span.traceId, 16),
        spanId: base64ToHex(span.spanId, 8),
        parentSpanId: span.parentSpanId && base64ToHex(span.parentSpanId, 8),
        traceState: span.traceState,
        name: span.name,
        kind: span.kind,
        startNanos: BigInt(span.startTimeUnixNano),
        endNanos: BigInt(span.endTimeUnixNano),
        isError: span.status?.code === "STATUS_CODE_ERROR",
        attributes: toRecord(span.attributes),
        resource: toRecord(resource.attributes),
      })),
    ),
  );
}

interface ExportedJson {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: KeyValues };
    readonly scopeSpans: readonly {
      readonly spans: readonly {
        readonly traceId: string;
        readonly spanId: string;
        readonly parentSpanId?: string;
        readonly traceState?: string;
        readonly name: string;
        readonly kind: string;
        readonly startTimeUnixNano: string;
        readonly endTimeUnixNano: string;
        readonly status?: { readonly code: string };
        readonly attributes: KeyValues;
      }[];
    }[];
  }[];
}

type KeyValues = readonly { readonly key: string; readonly value: Readonly<Record<string, string>> }[];

function toRecord(attributes: KeyValues): Record<string, string> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, String(Object.values(value)[0])]));
}

/** In OTLP's JSON the ids are in hexadecimal, and not in base64 as bytes are in protobuf's. */
function hexToBase64(key: string, value: unknown): unknown {
  return /(trace|span)Id$/i.test(key) ? Buffer.from(String(value), "hex").toString("base64") : value;
}

function base64ToHex(text: string, length: number): string {
  const bytes = Buffer.from(text, "base64");
  if (bytes.length !== length) throw new Error(`an id has ${bytes.length} bytes`);
  return bytes.toString("hex");
}
