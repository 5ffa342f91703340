import type { JsonObject, KeyDefaults } from "../../domain/fields.ts";
import { type IpRanges, toIpRanges } from "../../domain/ip-allow.ts";
import type { LastKnownBalance } from "../../domain/key.ts";
import { areNamedRateLimits, type NamedRateLimit } from "../../domain/limits.ts";
import type { RateLimit } from "../../domain/rate-limit.ts";
import type { RefillInterval } from "../../domain/refill-calendar.ts";
import { Unavailable } from "../../domain/unavailable.ts";

/* What columns are read as. Each throws `Unavailable`, for this row only, if what is stored cannot have been written. */

type Text = string | null;
type Whole = number | null;

/** By the kind of the field. */
export const read = {
  text: (value: Text) => value ?? undefined,
  moment: (value: Whole) => value ?? undefined,
  whole(value: Whole, max = Number.MAX_SAFE_INTEGER): number | undefined {
    if (value === null || isIntegerIn(1, value, max)) return value ?? undefined;
    throw damaged(new RangeError("not a number in its range"));
  },
  flag: (value: Whole) => value === 1,
  // Most have none.
  json: (value: Text): JsonObject => (value === "{}" ? {} : (parsed(value) as JsonObject)),
  defaults: (value: Text) => parsed(value) as KeyDefaults,
  texts: readTexts,
  addresses: readTexts,
  rateLimit(local: Whole, limit: Whole, durationMs: Whole): RateLimit | undefined {
    if (limit === null || durationMs === null) return undefined;
    return { mode: local === 1 ? "local" : "strict", limit, durationMs };
  },
  rateLimits(value: Text): readonly NamedRateLimit[] | undefined {
    const limits = value === null ? undefined : parsed(value);
    if (limits === undefined || areNamedRateLimits(limits)) return limits;
    throw damaged(new TypeError("not a list of limits"));
  },
};

function readTexts(value: Text): readonly string[] | undefined {
  const texts = value === null ? undefined : parsed(value);
  if (texts === undefined || areTexts(texts)) return texts;
  throw damaged(new TypeError("not a list of texts"));
}

function areTexts(texts: unknown): texts is readonly string[] {
  return Array.isArray(texts) && texts.length > 0 && texts.every((one) => typeof one === "string");
}

export function readRanges(value: Text): IpRanges | undefined {
  const texts = readTexts(value);
  try {
    return texts && toIpRanges(texts);
  } catch (cause) {
    throw damaged(cause);
  }
}

/** A counter as it was when its key or owner was looked up. */
export function readBalance(remaining: Whole, interval: Text): LastKnownBalance | undefined {
  if (remaining === null) return undefined;
  return { remaining, refillInterval: (interval as RefillInterval | null) ?? undefined };
}

function parsed(value: Text): unknown {
  try {
    return JSON.parse(value as string);
  } catch (cause) {
    throw damaged(cause);
  }
}

function damaged(cause: unknown): Unavailable {
  return new Unavailable("what is stored of a key, an owner, an API or a root key cannot be read", {
    cause,
    affectsOneKeyOnly: true,
  });
}

/** For values from a data file: any program may have written to it. */
export function isIntegerIn(min: number, value: unknown, max: number): value is number {
  return Number.isInteger(value) && (value as number) >= min && (value as number) <= max;
}
