import type { Ambient } from "./ambient.ts";
import type { LogFields } from "./log.ts";

const everyMs = 1000;

/** A warning that every call may cause. At most one line a second is logged; `unlogged` counts those left out before it. */
export function createPacedWarning(
  { clock, log }: Pick<Ambient, "clock" | "log">,
  message: string,
): (fields: () => LogFields) => void {
  let silentUntilMs = Number.NEGATIVE_INFINITY;
  let unlogged = 0;
  return (fields) => {
    const nowMs = clock.monotonicMs();
    if (nowMs < silentUntilMs) {
      unlogged++;
      return;
    }
    log.warn(message, { ...fields(), unlogged });
    silentUntilMs = nowMs + everyMs;
    unlogged = 0;
  };
}
