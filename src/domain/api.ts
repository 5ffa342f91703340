import type { ChangesOf, KeyDefaults, PropertiesOf, Stored } from "./fields.ts";
import type { ApiFields } from "./resources.ts";

/** What keys are for. */
export interface StoredApi extends PropertiesOf<ApiFields>, Stored {}

/** An API to be stored. */
export interface NewApi extends PropertiesOf<ApiFields> {
  readonly id: string;
}

export type ApiFieldChanges = ChangesOf<ApiFields>;

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
