import { Secret } from "../domain/secret.ts";
import type { IdempotencyKey } from "../usecases/idempotency.ts";
import { type CallContext, headerOf, idempotencyHeader } from "./call.ts";
import { InvalidRequest } from "./invalid-request.ts";

/** The header `Idempotency-Key` of a call. `apiId`: the API that the request names, if it names one. */
export function idempotencyKeyOf({ call, caller }: CallContext, apiId?: string): IdempotencyKey | undefined {
  const value = headerOf(call.headers, idempotencyHeader);
  if (value === undefined || caller === undefined) return undefined;
  if (!/^[\x21-\x7e]{1,255}$/.test(value)) {
    throw new InvalidRequest([{ path: "Idempotency-Key", message: "must be 1 to 255 visible ASCII characters" }]);
  }
  return { rootKey: caller.rootKey, value: new Secret(value), method: call.endpoint.name, apiId };
}
