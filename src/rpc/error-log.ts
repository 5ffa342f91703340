import type { Ambient } from "../ambient/ambient.ts";
import type { LogFields } from "../ambient/log.ts";
import { createPacedLines, type PacedLine } from "../ambient/paced-lines.ts";
import type { ErrorCode } from "./api-error.ts";
import { malformedResponse, overloadedResponse } from "./http1-response.ts";

/** For each code and protocol, in each process. Strangers can cause errors: they must not fill the log, nor hide others. */
const linesPerSecond = 10;

/** Logs answers with errors, so that the request id that a caller quotes is found. Nothing that the caller has sent. */
export class ErrorLog {
  readonly #deps: Pick<Ambient, "clock" | "log">;
  readonly #common: LogFields;
  readonly #lines = new Map<string, PacedLine>();

  /** `common`: what every line says. */
  constructor(deps: Pick<Ambient, "clock" | "log">, common: LogFields = {}) {
    this.#deps = deps;
    this.#common = common;
  }

  /** `call`: for a request that became one. */
  add(code: ErrorCode, requestId: string, call?: { readonly method: string; readonly protocol: string }): void {
    const kind = `${code} ${call?.protocol ?? ""}`;
    let line = this.#lines.get(kind);
    if (line === undefined) {
      line = createPacedLines(this.#deps, "info", "an error was answered", linesPerSecond);
      this.#lines.set(kind, line);
    }
    line(() => ({ requestId, ...call, ...this.#common, code }));
  }
}

/** How a port refuses what does not become a call: logged, and counted where there are `metrics`. */
export function createRefusals(
  errorLog: ErrorLog,
  newRequestId: () => string,
  metrics?: Pick<Ambient["metrics"], "requestRefused">,
) {
  const onRefused = (code: ErrorCode, requestId: string) => {
    metrics?.requestRefused(code);
    errorLog.add(code, requestId);
  };
  return {
    onRefused,
    malformed: (error: NodeJS.ErrnoException) => malformedResponse(error, newRequestId(), onRefused),
    /** The answer to a connection beyond the limit. */
    overloaded() {
      const requestId = newRequestId();
      errorLog.add("SERVICE_UNAVAILABLE", requestId);
      return overloadedResponse(requestId);
    },
  };
}
