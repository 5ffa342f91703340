import { expect, it } from "vitest";
import { readTraceContext } from "../../src/domain/trace-context.ts";

const traceId = "0af7651916cd43dd8448eb211c80319c";
const spanId = "b7ad6b7169203331";
const header = `00-${traceId}-${spanId}-01`;

it.each<[string, string, boolean]>([
  ["a sampled one", header, true],
  ["one that is not sampled", header.replace(/1$/, "0"), false],
  ["one with flags that are not known", header.replace(/01$/, "ff"), true],
  ["one of a later version, with more behind it", `cc${header.slice(2)}-more`, true],
  ["one of a later version", `cc${header.slice(2)}`, true],
  ["one with spaces around it", ` ${header}\t`, true],
])("a traceparent is read: %s", (_, traceparent, isSampled) => {
  expect(readTraceContext(traceparent, undefined)).toEqual({ traceId, spanId, isSampled, traceState: undefined });
});

it.each<[string, string | undefined]>([
  ["that is not there", undefined],
  ["that is empty", ""],
  ["with more behind it", `${header}-more`],
  ["of the version that is none", `ff${header.slice(2)}`],
  ["in capital letters", header.toUpperCase()],
  ["of zeros for a trace", `00-${"0".repeat(32)}-${spanId}-01`],
  ["of zeros for a span", `00-${traceId}-${"0".repeat(16)}-01`],
  ["that is too short", header.slice(0, -1)],
  ["of a later version, with more that does not begin with a hyphen", `cc${header.slice(2)}more`],
  ["that was there twice", `${header}, ${header}`],
])("a traceparent %s begins a new trace", (_, traceparent) => {
  expect(readTraceContext(traceparent, "a=1")).toBeUndefined();
});

it.each<[string, string | undefined]>([
  ["a=1", "a=1"],
  ["rojo=00f067aa0ba902b7,congo=t61rcWkgMzE", "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"],
  ["tenant@vendor=1, b=2", "tenant@vendor=1, b=2"],
  ["nothing", undefined],
  ["a=\u00e9", undefined],
  [`a=${"1".repeat(511)}`, undefined],
])("of the tracestate %j is kept: %j", (tracestate, kept) => {
  expect(readTraceContext(header, tracestate)?.traceState).toBe(kept);
});
