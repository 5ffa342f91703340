import { isLatchkeyError } from "./errors.ts";

const TRIES = 3;
const FIRST_PAUSE_MS = 100;

/**
 * Calls until it succeeds, where the failure may pass, up to three times. The service says how long to wait, or the pause
 * doubles, by a random part shorter: clients that failed together do not come back together. Only for calls that may be
 * executed twice.
 */
export async function repeat<T>(untilMs: number, signal: AbortSignal, call: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await call();
    } catch (error) {
      signal.throwIfAborted();
      if (!isLatchkeyError(error) || !error.retryable || tries === TRIES) throw error;
      const pauseMs = error.retryAfterMs ?? FIRST_PAUSE_MS * 2 ** (tries - 1) * (1 - Math.random() / 2);
      // The known error is thrown immediately, instead of a time-out later.
      if (Date.now() + pauseMs >= untilMs) throw error;
      await pause(pauseMs, signal);
    }
  }
}

/** Rejects with the signal's reason when it fires. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", stop);
      resolve();
    }, ms);
    signal.addEventListener("abort", stop, { once: true });
  });
}
