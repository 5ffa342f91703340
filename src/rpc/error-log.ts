import type { Ambient } from "../ambient/ambient.ts";
import type { LogFields } from "../ambient/log.ts";
import { createPacedLines, type PacedLine } from "../ambient/paced-lines.ts";
import type { ErrorCode } from "./api-error.ts";

/** Of each code and serving thread. Strangers can cause errors: they must not fill the log, nor hide other codes. */
const linesPerSecond = 10;

/** Logs answers with errors, so that the request id that a caller quotes is found. Nothing that the caller has sent. */
export class ErrorLog {
  readonly #deps: Pick<Ambient, "clock" | "log">;
  readonly #lines = new Map<ErrorCode, PacedLine>();

  constructor(deps: Pick<Ambient, "clock" | "log">) {
    this.#deps = deps;
  }

  /** `about`: the request id, and the method and protocol if it became a call. */
  add(code: ErrorCode, about: LogFields & { readonly requestId: string }): void {
    let line = this.#lines.get(code);
    if (line === undefined) {
      line = createPacedLines(this.#deps, "info", "an error was answered", linesPerSecond);
      this.#lines.set(code, line);
    }
    line(() => ({ ...about, code }));
  }
}
