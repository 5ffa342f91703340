import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ApiSchema, KeyDefaults as KeyDefaultsMessage } from "../../gen/latchkey/v1/apis_pb.js";
import type { KeyDefaultsUpdate, Updates } from "../../gen/latchkey/v1/updates.ts";
import type { KeyDefaults, StoredApi } from "../domain/api.ts";
import type { ApiChangeParts, DefaultsParts } from "../domain/partial-changes.ts";
import type { ApiPosition } from "../usecases/read-apis.ts";
import { toRateLimit, toRateLimitPart, toRatelimit, toRefillPart, toRefillRule } from "./key-messages.ts";
import { fromCursor, toCursor } from "./page-cursor.ts";

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

export function toApiChanges({ name, defaults }: Updates["latchkey.v1.UpdateApiRequest"]): ApiChangeParts {
  return { name, defaults: defaults && toDefaultsParts(defaults) };
}

function toDefaultsParts({ ratelimit, refill, ...others }: KeyDefaultsUpdate): DefaultsParts {
  return { ...others, rateLimit: ratelimit && toRateLimitPart(ratelimit), refill: refill && toRefillPart(refill) };
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

export function toApisCursor({ createdAtMs, apiId }: ApiPosition): string {
  return toCursor("apis", `${createdAtMs} ${apiId}`);
}

const positionPattern = /^[1-9]\d{0,14} [^\0]{1,255}$/su;

export function fromApisCursor(cursor: string): ApiPosition {
  const position = fromCursor("apis", cursor, positionPattern);
  const [createdAt = ""] = position.split(" ", 1);
  return { createdAtMs: Number(createdAt), apiId: position.slice(createdAt.length + 1) };
}
