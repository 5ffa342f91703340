import type { Message } from "@bufbuild/protobuf";
import { Secret } from "../domain/secret.ts";
import type { IdempotencyKey } from "../usecases/idempotency.ts";
import { type CallContext, headerOf, idempotencyHeader } from "./call.ts";
import { InvalidRequest } from "./invalid-request.ts";

/** The header `Idempotency-Key` of a call. It counts in the API that the request names, if its method is about one. */
export function idempotencyKeyOf({ call, caller }: CallContext, request: Message): IdempotencyKey | undefined {
  const value = headerOf(call.headers, idempotencyHeader);
  if (value === undefined || caller === undefined) return undefined;
  if (!/^[\x21-\x7e]{1,255}$/.test(value)) {
    throw new InvalidRequest([{ path: "Idempotency-Key", message: "must be 1 to 255 visible ASCII characters" }]);
  }
  const { name: method, target } = call.endpoint;
  const apiId = target === "apiId" ? (request as { readonly apiId?: string }).apiId : undefined;
  return { rootKey: caller.rootKey, value: new Secret(value), method, apiId };
}
