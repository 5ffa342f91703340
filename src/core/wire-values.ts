import type { KeyDefaults } from "../domain/api.ts";
import { ipAllowMax, isIpRange } from "../domain/ip-allow.ts";
import type { JsonObject, NewKey } from "../domain/key.ts";
import { byteLengthMax, byteLengthMin, prefixLengthMax, prefixPattern } from "../domain/key-format.ts";
import { areNamedRateLimits, costMaxMax, type NamedRateLimit, toNamedRateLimit } from "../domain/limits.ts";
import { isDeeperThan, metaBytesMax, metaDepthMax } from "../domain/meta.ts";
import type { NewOwner } from "../domain/owner.ts";
import { isKeyPermission, keyPermissionsMax } from "../domain/permissions.ts";
import { isRateLimit, type RateLimit } from "../domain/rate-limit.ts";
import { type RefillRule, remainingMax } from "../domain/usage.ts";
import type { ImportedKey } from "../store/commands.ts";
import {
  type Check,
  digest,
  impossible,
  moment,
  object,
  oneOf,
  optional,
  someOf,
  text,
  textOf,
  textThat,
  truth,
  wholeNumber,
} from "./checks.ts";

/* Checks of what commands are made of. */

export const rateLimit: Check<RateLimit> = (value, name) => {
  const { mode, limit, durationMs } = Object(value) as RateLimit;
  if (!isRateLimit({ mode, limit, durationMs })) throw impossible(name);
  return { mode, limit, durationMs };
};

export const rateLimits: Check<readonly NamedRateLimit[]> = (value, name) => {
  if (!areNamedRateLimits(value)) throw impossible(name);
  return value.map(toNamedRateLimit);
};

/** Most APIs of a root key or an owner. */
export const apiIdsMax = 100;

export const costMax = wholeNumber(1, costMaxMax);

export const meta: Check<JsonObject> = (value, name) => {
  const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
  if (!isObject || isDeeperThan(metaDepthMax, value as JsonObject)) throw impossible(name);
  if (Buffer.byteLength(JSON.stringify(value)) > metaBytesMax) throw impossible(name);
  return value as JsonObject;
};

export const refill = object<RefillRule>({
  interval: oneOf("daily", "monthly"),
  amount: wholeNumber(1, remainingMax),
  carryOver: truth,
});

/** Of an owner. */
export const apiIds = someOf(text, apiIdsMax);
export const permissions = someOf(textThat(isKeyPermission), keyPermissionsMax);
export const ipAllow = someOf(textThat(isIpRange), ipAllowMax);

const newKeyChecks = {
  id: text,
  apiId: text,
  ownerId: optional(text),
  name: optional(text),
  meta,
  enabled: truth,
  expiresAtMs: optional(moment),
  rateLimit: optional(rateLimit),
  rateLimits: optional(rateLimits),
  costMax: optional(costMax),
  start: text,
  createdAtMs: moment,
  secretDigest: digest,
  remaining: optional(wholeNumber(0, remainingMax)),
  refill: optional(refill),
  permissions: optional(permissions),
  ipAllow: optional(ipAllow),
};

/** Only a counter can be refilled. */
function withCounterIfRefilled<Fields extends Pick<KeyDefaults, "remaining" | "refill">>(
  fields: Check<Fields>,
): Check<Fields> {
  return (value, name) => {
    const checked = fields(value, name);
    if (checked.refill !== undefined && checked.remaining === undefined) throw impossible("refill");
    return checked;
  };
}

export const newKey = withCounterIfRefilled(object<NewKey>(newKeyChecks));
// People may not have known, or not have wanted to show, how the secret of an imported key starts.
const startOrNone: Check<string> = (value, name) => (value === "" ? "" : text(value, name));
export const importedKey = withCounterIfRefilled(
  object<ImportedKey>({ ...newKeyChecks, start: startOrNone, eventId: text }),
);

export const newOwner = withCounterIfRefilled(
  object<NewOwner>({
    id: text,
    enabled: truth,
    apiIds: optional(apiIds),
    meta,
    rateLimits: optional(rateLimits),
    remaining: optional(wholeNumber(0, remainingMax)),
    refill: optional(refill),
  }),
);

export const defaults = withCounterIfRefilled(
  object<KeyDefaults>({
    prefix: optional(textOf(prefixPattern, prefixLengthMax)),
    byteLength: optional(wholeNumber(byteLengthMin, byteLengthMax)),
    rateLimit: optional(rateLimit),
    remaining: optional(wholeNumber(0, remainingMax)),
    refill: optional(refill),
    costMax: optional(costMax),
  }),
);
