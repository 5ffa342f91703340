import { LatchkeyError } from "./errors.ts";

// The longest time of a timer. With a longer one it would fire immediately.
const TIMEOUT_MS_MAX = 2_147_483_647;

export function checkTimeout(timeoutMs: number): void {
  if (!(timeoutMs > 0 && timeoutMs <= TIMEOUT_MS_MAX)) {
    throw new RangeError(`timeoutMs must be more than 0 and at most ${TIMEOUT_MS_MAX}`);
  }
}

/** Runs a call until it ends, its time is over or the caller's signal fires, whichever is first. */
export async function withDeadline<T>(
  timeoutMs: number,
  caller: AbortSignal | undefined,
  call: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const deadline = new AbortController();
  // Not AbortSignal.timeout: its timer would outlive the call.
  const timer = setTimeout(
    () => deadline.abort(new LatchkeyError("TIMEOUT", `no answer within ${timeoutMs} ms`)),
    timeoutMs,
  );
  try {
    return await call(caller ? AbortSignal.any([caller, deadline.signal]) : deadline.signal);
  } finally {
    clearTimeout(timer);
  }
}
