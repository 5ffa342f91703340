import { andThen } from "../domain/maybe-promise.ts";
import type { Responder } from "./http-handler.ts";
import type { Readiness } from "./readiness.ts";
import { jsonAnswer } from "./respond.ts";

/** Liveness and readiness probes. */
export function createProbes(readiness: Readiness): Map<string, Responder> {
  const alive = jsonAnswer(200, '{"status":"alive"}');
  const ready = jsonAnswer(200, '{"status":"ready"}');
  const notReady = jsonAnswer(503, '{"status":"not ready"}', ["retry-after", "1"]);
  return new Map<string, Responder>([
    ["/livez", () => alive],
    ["/readyz", () => andThen(readiness.refresh(), () => (readiness.ready ? ready : notReady))],
  ]);
}
