import type { Clock } from "./clock.ts";

/** The header Date as it is now. Printed once a second: to print it with every answer would take longer than the answer. */
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
