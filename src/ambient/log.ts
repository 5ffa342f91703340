import { pino } from "pino";

export type LogLevel = "debug" | "info" | "warn" | "error";

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

/** JSON lines on standard error. Standard output has only the text for people. */
export function createLog(level: LogLevel, write: (line: string) => void): Log {
  const logger = pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    { write },
  );
  return {
    debug: (message, fields) => logger.debug(fields ?? {}, message),
    info: (message, fields) => logger.info(fields ?? {}, message),
    warn: (message, fields) => logger.warn(fields ?? {}, message),
    error: (message, cause, fields) => logger.error({ ...fields, err: cause }, message),
    debugEnabled: logger.isLevelEnabled("debug"),
  };
}
