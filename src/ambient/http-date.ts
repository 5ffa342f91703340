import type { Clock } from "./clock.ts";

/** The current Date header. Formatted once a second: formatting it for every answer would take longer than the answer. */
export function createHttpDate(clock: Clock): () => string {
  let printed: string | undefined;
  return () => {
    if (printed === undefined) {
      const nowMs = clock.nowMs();
      printed = new Date(nowMs).toUTCString();
      const forget = () => {
        printed = undefined;
      };
      setTimeout(forget, 1000 - (nowMs % 1000)).unref();
    }
    return printed;
  };
}
