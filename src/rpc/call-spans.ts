import type { Ambient } from "../ambient/ambient.ts";
import type { OtlpExporter, Span } from "../ambient/otlp-exporter.ts";
import { readTraceContext } from "../domain/trace-context.ts";
import { type ApiError, errorCodes } from "./api-error.ts";
import { type Call, headerOf, type RunCall } from "./call.ts";

const systems = { json: "http", authz: "http", connect: "connect_rpc", grpc: "grpc", "grpc-web": "grpc" } as const;

interface TraceDeps extends Pick<Ambient, "clock" | "random"> {
  readonly exporter: Pick<OtlpExporter, "add">;
  readonly sampleRatio: number;
}

/** Adds a span for each call that is sampled: as its parent was if it has one, else by chance. */
export function traceCalls(runCall: RunCall, { exporter, clock, random, sampleRatio }: TraceDeps): RunCall {
  const newId = (bytes: number) => Buffer.from(random.bytes(bytes)).toString("hex");
  const isChosen = () => {
    const [a = 0, b = 0, c = 0] = random.bytes(3);
    return (a << 16) + (b << 8) + c < sampleRatio * 2 ** 24;
  };

  return function runTracedCall(call) {
    const parent = readTraceContext(headerOf(call.headers, "traceparent"), headerOf(call.headers, "tracestate"));
    if (!(parent?.isSampled ?? isChosen())) return runCall(call);
    const startUnixMs = clock.nowMs();
    const startedMs = clock.monotonicMs();
    const end = (answer: object, error?: ApiError) =>
      exporter.add({
        traceId: parent?.traceId ?? newId(16),
        spanId: newId(8),
        parentSpanId: parent?.spanId,
        traceState: parent?.traceState,
        name: `${call.endpoint.method.parent.typeName}/${call.endpoint.method.name}`,
        startUnixMs,
        endUnixMs: startUnixMs + clock.monotonicMs() - startedMs,
        // As the conventions have it, an error of the caller is none of the server.
        isError: error !== undefined && errorCodes[error.code].status >= 500,
        attributes: attributesOf(call, answer, error),
      });
    let answered: ReturnType<RunCall>;
    try {
      answered = runCall(call);
    } catch (thrown) {
      end({}, thrown as ApiError);
      throw thrown;
    }
    if (answered instanceof Promise) answered.then(end, (thrown: ApiError) => end({}, thrown));
    else end(answered);
    return answered;
  };
}

/** By OpenTelemetry's conventions for RPC, and what only this service has. A key is named by its id only. */
function attributesOf({ endpoint, protocol, requestId }: Call, answer: object, error?: ApiError): Span["attributes"] {
  const { code, keyId, success } = answer as { code?: string; keyId?: string; success?: boolean };
  const isVerification = endpoint.name === "KeysService/VerifyKey";
  return {
    "rpc.system": systems[protocol],
    "rpc.service": endpoint.method.parent.typeName,
    "rpc.method": endpoint.method.name,
    "rpc.grpc.status_code": systems[protocol] === "grpc" ? (error?.rpc ?? 0) : undefined,
    "error.type": error?.code,
    "latchkey.outcome": error?.code ?? (isVerification ? code : success === false ? "RATE_LIMITED" : "OK"),
    "latchkey.protocol": protocol,
    "latchkey.key_id": keyId,
    "latchkey.request_id": requestId,
  };
}
