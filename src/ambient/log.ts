import { pino } from "pino";

export type LogLevel = "debug" | "info" | "warn" | "error";
export type LogFormat = "json" | "text";

/** Fields of a log line. Never a key, a root key, a body, or a foreign error message that could contain one. */
export type LogFields = Readonly<Record<string, string | number | boolean | undefined>>;

export interface Log {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  /** The cause appears only in the log; callers get a fixed message and the request id. */
  error(message: string, cause: unknown, fields?: LogFields): void;
  readonly debugEnabled: boolean;
}

/** A log whose level can change. */
export interface AdjustableLog extends Log {
  setLevel(level: LogLevel): void;
}

/** Lines on standard error, in JSON for programs or in text for people. Standard output has only the text of a start. */
export function createLog(
  level: LogLevel,
  write: (line: string) => void,
  format: LogFormat = "json",
  fields: LogFields | null = null,
): AdjustableLog {
  const logger = pino(
    {
      level,
      // In every line.
      base: fields,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    { write: format === "json" ? write : (line) => write(toText(line)) },
  );
  return {
    debug: (message, fields) => logger.debug(fields ?? {}, message),
    info: (message, fields) => logger.info(fields ?? {}, message),
    warn: (message, fields) => logger.warn(fields ?? {}, message),
    error: (message, cause, fields) => logger.error({ ...fields, err: cause }, message),
    get debugEnabled() {
      return logger.isLevelEnabled("debug");
    },
    setLevel(next) {
      logger.level = next;
    },
  };
}

/** A line of JSON as people read it: time, level, message, then the fields. The stack of an error follows on lines of its own. */
function toText(line: string): string {
  const { level, time, msg, err, ...fields } = JSON.parse(line) as Record<string, unknown>;
  const printed = Object.entries(fields).map(([name, value]) => ` ${name}=${plainOrQuoted(String(value))}`);
  const stack = err === undefined ? "" : `\n    ${withoutControls(stackOf(err)).replaceAll("\n", "\n    ")}`;
  return `${String(time)} ${String(level).toUpperCase().padEnd(5)} ${String(msg)}${printed.join("")}${stack}\n`;
}

/** Quoted where a value could be taken for something else. */
function plainOrQuoted(value: string): string {
  return /^[^\s"=\p{Cc}]+$/u.test(value) ? value : withoutControls(JSON.stringify(value));
}

/** Control characters could move the cursor of a terminal, or do worse. */
function withoutControls(text: string): string {
  return text.replace(/(?!\n)\p{Cc}/gu, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

function stackOf(error: unknown): string {
  const { stack, message } = Object(error) as { stack?: string; message?: string };
  return stack ?? message ?? String(error);
}
