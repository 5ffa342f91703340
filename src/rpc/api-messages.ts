import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ApiSchema, KeyDefaults as KeyDefaultsMessage } from "../../gen/latchkey/v1/apis_pb.js";
import type { KeyDefaults, StoredApi } from "../domain/api.ts";
import type { ApiPosition } from "../usecases/read-apis.ts";
import { InvalidRequest } from "./invalid-request.ts";
import { toRateLimit, toRatelimit, toRefillRule } from "./key-messages.ts";

/* APIs and their parts: as messages, and as the service knows them. */

export function toKeyDefaults(defaults: KeyDefaultsMessage): KeyDefaults {
  const { prefix, byteLength, ratelimit, remaining, refill, costMax } = defaults;
  return {
    prefix,
    byteLength,
    rateLimit: ratelimit && toRateLimit(ratelimit),
    remaining,
    refill: refill && toRefillRule(refill),
    costMax,
  };
}

/** An API as it is read. */
export function toApi({ id: apiId, name, defaults, ...api }: StoredApi): MessageInitShape<typeof ApiSchema> {
  const { prefix, byteLength, rateLimit, remaining, refill, costMax } = defaults;
  const given = { prefix, byteLength, ratelimit: rateLimit && toRatelimit(rateLimit), remaining, refill, costMax };
  const isNone = Object.values(given).every((value) => value === undefined);
  return {
    apiId,
    name,
    defaults: isNone ? undefined : given,
    createdAt: api.createdAtMs,
    updatedAt: api.updatedAtMs,
    version: api.version,
  };
}

/* Callers are to send a cursor back and not to read it, so that it may hold something else one day. */

export function toApisCursor({ createdAtMs, apiId }: ApiPosition): string {
  return Buffer.from(`${createdAtMs} ${apiId}`).toString("base64url");
}

export function fromApisCursor(cursor: string): ApiPosition {
  const { createdAt, apiId } =
    /^(?<createdAt>[1-9]\d{0,14}) (?<apiId>.+)$/su.exec(Buffer.from(cursor, "base64url").toString())?.groups ?? {};
  if (createdAt !== undefined && apiId !== undefined) {
    const position = { createdAtMs: Number(createdAt), apiId };
    // Compared, because the decoder passes over what is not base64url and what is not UTF-8.
    const isPossible = [...apiId].length <= 255 && !apiId.includes("\0");
    if (isPossible && toApisCursor(position) === cursor) return position;
  }
  throw new InvalidRequest([{ path: "cursor", message: "must be the cursor of a page of this list" }]);
}
