import { defaultsFields, type KeyDefaults, type PropertiesOf, type Stored } from "./fields.ts";
import type { ApiFields } from "./resources.ts";

/** What keys are for. */
export interface StoredApi extends PropertiesOf<ApiFields>, Stored {}

/** An API to be stored. */
export interface NewApi extends PropertiesOf<ApiFields> {
  readonly id: string;
}

/**
 * The request, with the defaults where it is silent. Each field is taken over on its own; a refill rule only by a key with a
 * counter.
 */
export function withDefaults<Request extends KeyDefaults>(request: Request, defaults: KeyDefaults): Request {
  const completed: Record<string, unknown> = { ...request };
  for (const name of namesOfDefaults) completed[name] ??= defaults[name];
  if (completed.remaining === undefined) completed.refill = undefined;
  return completed as Request;
}

const namesOfDefaults = Object.keys(defaultsFields) as readonly (keyof KeyDefaults)[];
