import type { MessageInitShape } from "@bufbuild/protobuf";
import type {
  NamedLimitSchema,
  RateLimitSchema,
  NamedLimit as WireNamedLimit,
  RateLimit as WireRateLimit,
} from "../../gen/latchkey/core/v2/core_pb.js";
import type { JsonObject } from "../domain/fields.ts";
import type { LastKnownBalance } from "../domain/key.ts";
import type { NamedLimit, NamedRateLimit } from "../domain/limits.ts";
import type { RateLimit } from "../domain/rate-limit.ts";
import type { RefillInterval } from "../domain/refill-calendar.ts";

/* Values of fields that have another form in messages of the link. The generated `wire.ts` calls these. */

export function toWireJson(value: JsonObject): string {
  const text = JSON.stringify(value);
  return text === "{}" ? "" : text;
}

export function fromWireJson(text: string): JsonObject {
  return text === "" ? {} : (JSON.parse(text) as JsonObject);
}

/** A list that is absent is empty in a message. */
export function toWireList<One>(list: readonly One[] | undefined): One[] {
  return list === undefined ? [] : [...list];
}

export function fromWireList<One>(list: readonly One[]): readonly One[] | undefined {
  return list.length === 0 ? undefined : list;
}

export function toWireRateLimit({ mode, limit, durationMs }: RateLimit): MessageInitShape<typeof RateLimitSchema> {
  return { strict: mode === "strict", limit, durationMs };
}

export function fromWireRateLimit({ strict, limit, durationMs }: WireRateLimit): RateLimit {
  return { mode: strict ? "strict" : "local", limit, durationMs };
}

export function toWireLimits(
  limits: readonly NamedRateLimit[] | undefined,
): MessageInitShape<typeof NamedLimitSchema>[] {
  return limits?.map(({ name, rule }) => ({ name, rule: toWireRateLimit(rule) })) ?? [];
}

/** `limitsOf`: gives each limit of the key or owner with this id its subject. */
export function fromWireLimits(
  limits: readonly WireNamedLimit[],
  id: string,
  limitsOf: (id: string, limits: readonly NamedRateLimit[]) => readonly NamedLimit[],
): readonly NamedLimit[] | undefined {
  if (limits.length === 0) return undefined;
  const named = limits.map(({ name, rule }) => ({ name, rule: fromWireRateLimit(rule as WireRateLimit) }));
  return limitsOf(id, named);
}

export function fromWireBalance({
  remaining,
  refillInterval,
}: {
  readonly remaining?: number | undefined;
  readonly refillInterval?: string | undefined;
}): LastKnownBalance | undefined {
  if (remaining === undefined) return undefined;
  return { remaining, refillInterval: refillInterval as RefillInterval | undefined };
}
