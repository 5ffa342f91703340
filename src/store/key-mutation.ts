import { isRateLimit, type RateLimit } from "../domain/rate-limit.ts";

/**
 * Every change that can be made to a stored key. Only the stores that keep keys look into it: guard, announcements
 * and links between threads and processes forward it unchanged. It is plain data, so that it can be sent to
 * another thread or process.
 * A counter is not changed by a mutation: its balance belongs to the usage ledger.
 */
export type KeyMutation =
  /** Removes the key with its secrets, counter and window. */
  | { readonly kind: "delete" }
  /**
   * Gives the key another rate limit, or none. An open window keeps its end and its granted permits, also while the key
   * is in the other mode: otherwise one window could grant its limit twice.
   */
  | { readonly kind: "setRateLimit"; readonly rateLimit: RateLimit | undefined };

/** A mutation that another process has sent as JSON; undefined if it is none. It is not trusted. */
export function readMutation(json: string): KeyMutation | undefined {
  const { kind, rateLimit } = parseObject(json);
  switch (kind) {
    case "delete":
      return { kind };
    case "setRateLimit": {
      if (rateLimit === undefined) return { kind, rateLimit };
      const { mode, limit, durationMs } = rateLimit as RateLimit;
      return isRateLimit({ mode, limit, durationMs }) ? { kind, rateLimit: { mode, limit, durationMs } } : undefined;
    }
    default:
      return undefined;
  }
}

function parseObject(json: string): Readonly<Record<string, unknown>> {
  try {
    return Object(JSON.parse(json));
  } catch {
    return {};
  }
}
