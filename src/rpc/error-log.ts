import type { Ambient } from "../ambient/ambient.ts";
import type { LogFields } from "../ambient/log.ts";
import { createPacedLines, type PacedLine } from "../ambient/paced-lines.ts";
import type { ErrorCode } from "./api-error.ts";

/** Of each code, protocol and serving thread. Strangers can cause errors: they must not fill the log, nor hide others. */
const linesPerSecond = 10;

/** Logs answers with errors, so that the request id that a caller quotes is found. Nothing that the caller has sent. */
export class ErrorLog {
  readonly #deps: Pick<Ambient, "clock" | "log">;
  readonly #ofAll: LogFields;
  readonly #lines = new Map<string, PacedLine>();

  /** `ofAll`: what every line says. */
  constructor(deps: Pick<Ambient, "clock" | "log">, ofAll: LogFields = {}) {
    this.#deps = deps;
    this.#ofAll = ofAll;
  }

  /** `call`: for a request that became one. */
  add(code: ErrorCode, requestId: string, call?: { readonly method: string; readonly protocol: string }): void {
    const kind = `${code} ${call?.protocol ?? ""}`;
    let line = this.#lines.get(kind);
    if (line === undefined) {
      line = createPacedLines(this.#deps, "info", "an error was answered", linesPerSecond);
      this.#lines.set(kind, line);
    }
    line(() => ({ requestId, ...call, ...this.#ofAll, code }));
  }
}
