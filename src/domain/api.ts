import type { RateLimit } from "./rate-limit.ts";
import type { RefillRule } from "./usage.ts";

/** What keys are for. */
export interface StoredApi {
  readonly id: string;
  readonly name: string | undefined;
  readonly defaults: KeyDefaults;
  readonly createdAtMs: number;
  /** Of the last change; changes of its keys are none. */
  readonly updatedAtMs: number;
  /** Counts changes, the creation included. */
  readonly version: number;
}

/** What a new key takes over where its request is silent. A refill rule comes with a counter only. */
export interface KeyDefaults {
  readonly prefix?: string | undefined;
  readonly byteLength?: number | undefined;
  readonly rateLimit?: RateLimit | undefined;
  readonly remaining?: number | undefined;
  readonly refill?: RefillRule | undefined;
  readonly costMax?: number | undefined;
}

/** What becomes of the fields of an API that are changed: null removes one, a value sets it. */
export interface ApiFieldChanges {
  readonly name?: string | null | undefined;
  /** All of them. */
  readonly defaults?: KeyDefaults | undefined;
}

/**
 * The request, with the defaults where it is silent. Each field is taken over on its own; a refill rule only by a key with a
 * counter.
 */
export function withDefaults<Request extends KeyDefaults>(request: Request, defaults: KeyDefaults): Request {
  const remaining = request.remaining ?? defaults.remaining;
  return {
    ...request,
    prefix: request.prefix ?? defaults.prefix,
    byteLength: request.byteLength ?? defaults.byteLength,
    rateLimit: request.rateLimit ?? defaults.rateLimit,
    costMax: request.costMax ?? defaults.costMax,
    remaining,
    refill: remaining === undefined ? undefined : (request.refill ?? defaults.refill),
  };
}
