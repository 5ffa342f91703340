import type { Ambient } from "./ambient.ts";
import type { LogFields } from "./log.ts";

/** Logs one line, unless there were too many in this second. */
export type PacedLine = (fields: () => LogFields) => void;

/** Lines that every call may cause. At most so many a second are logged; `unlogged` counts those left out before a line. */
export function createPacedLines(
  { clock, log }: Pick<Ambient, "clock" | "log">,
  level: "info" | "warn",
  message: string,
  linesPerSecond: number,
): PacedLine {
  let secondEndsMs = Number.NEGATIVE_INFINITY;
  let left = 0;
  let unlogged = 0;
  return (fields) => {
    const nowMs = clock.monotonicMs();
    if (nowMs >= secondEndsMs) {
      secondEndsMs = nowMs + 1000;
      left = linesPerSecond;
    }
    if (left === 0) {
      unlogged++;
      return;
    }
    left--;
    log[level](message, { ...fields(), unlogged });
    unlogged = 0;
  };
}

/** A warning that every call may cause: once a second at most. */
export function createPacedWarning(deps: Pick<Ambient, "clock" | "log">, message: string): PacedLine {
  return createPacedLines(deps, "warn", message, 1);
}
