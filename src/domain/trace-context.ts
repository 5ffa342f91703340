/** The caller's span, as the W3C's headers `traceparent` and `tracestate` name it. */
export interface TraceContext {
  readonly traceId: string;
  readonly spanId: string;
  readonly isSampled: boolean;
  readonly traceState: string | undefined;
}

/** Version, trace, span and flags. Version 00 has nothing behind them, ff is none, and no id is all zeros. */
const traceparentPattern =
  /^(?!ff|00.{54})[\da-f]{2}-(?!0{32})([\da-f]{32})-(?!0{16})([\da-f]{16})-([\da-f]{2})(?:-|$)/;
/** Entries such as `vendor=value`, separated by commas. */
const tracestatePattern = /^[\w\-*/@]+=[\x20-\x7e]*$/;
const tracestateLengthMax = 512;

/** Undefined if there is no span, or if the header is malformed or was there twice: then a new trace begins. */
export function readTraceContext(
  traceparent: string | undefined,
  tracestate: string | undefined,
): TraceContext | undefined {
  const [, traceId, spanId, flags = ""] = traceparentPattern.exec(traceparent?.trim() ?? "") ?? [];
  if (traceId === undefined || spanId === undefined) return undefined;
  const state = tracestate?.trim() ?? "";
  const isState = state.length <= tracestateLengthMax && tracestatePattern.test(state);
  const isSampled = (Number.parseInt(flags, 16) & 1) === 1;
  return { traceId, spanId, isSampled, traceState: isState ? state : undefined };
}
