import type { Writable } from "node:stream";
import { type AdjustableLog, createLog, type LogFields, type LogFormat, type LogLevel } from "./log.ts";

/** The log of this process, on standard error. Each line has these fields. */
export function createProcessLog(
  settings: { readonly logLevel: LogLevel; readonly logFormat: LogFormat | "auto" },
  fields?: LogFields,
): AdjustableLog {
  const format = settings.logFormat === "auto" ? (process.stderr.isTTY ? "text" : "json") : settings.logFormat;
  const output = new LogOutput(process.stderr, (dropped) =>
    log.warn("lines of the log were dropped: nobody read them", { dropped }),
  );
  const log = createLog(settings.logLevel, (line) => output.write(line), format, fields);
  return log;
}

/** Most bytes of lines that wait for their reader. */
const waitingBytesMax = 1024 * 1024;

/**
 * Writes lines to standard error. Their reader may stop reading, or be gone: that neither ends the service nor fills
 * its memory. Lines without room are dropped, and `reportDropped` gets their number when there is room again.
 */
export class LogOutput {
  readonly #stream: Writable;
  readonly #reportDropped: (count: number) => void;
  #dropped = 0;

  constructor(stream: Writable, reportDropped: (count: number) => void) {
    this.#stream = stream;
    this.#reportDropped = reportDropped;
    ignoreLostReader(stream);
  }

  write(line: string): void {
    if (this.#stream.writableLength + line.length > waitingBytesMax) {
      this.#dropped++;
      return;
    }
    if (this.#dropped > 0) {
      const count = this.#dropped;
      this.#dropped = 0;
      this.#reportDropped(count);
    }
    this.#stream.write(line);
  }
}

/** Without a listener its error would end the process. */
export function ignoreLostReader(stream: Writable): void {
  stream.on("error", () => {});
}
