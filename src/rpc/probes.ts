import { readFileSync } from "node:fs";
import type { HttpHandler } from "./http-handler.ts";
import type { Readiness } from "./readiness.ts";
import { sendJson } from "./respond.ts";

/** Liveness and readiness probes. */
export function createProbes(readiness: Readiness): Map<string, HttpHandler> {
  return new Map<string, HttpHandler>([
    [
      "/livez",
      async (_, res) => {
        await undefined;
        sendJson(res, 200, '{"status":"alive"}');
      },
    ],
    [
      "/readyz",
      async (_, res) => {
        await readiness.refresh();
        if (readiness.ready) sendJson(res, 200, '{"status":"ready"}');
        else sendJson(res, 503, '{"status":"not ready"}', ["retry-after", "1"]);
      },
    ],
  ]);
}

/** The OpenAPI document, generated together with the code that it describes. */
export function createOpenApiHandler(): HttpHandler {
  // As bytes, shared by all answers: a string would be copied for each client that reads slowly.
  const document = readFileSync(new URL("../../gen/openapi.json", import.meta.url));
  return async (_, res) => {
    await undefined;
    sendJson(res, 200, document);
  };
}
