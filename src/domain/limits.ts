import { isRateLimit, type RateLimit } from "./rate-limit.ts";
import { limitOfKey, limitOfOwner } from "./subject.ts";

/** A limit with a name, as a key or an owner has up to `limitsMax` of them. */
export interface NamedRateLimit {
  readonly name: string;
  readonly rule: RateLimit;
}

/** A limit with a name, and the subject that it is counted under. */
export interface NamedLimit extends NamedRateLimit {
  readonly subject: string;
}

/** Most limits with a name of one key or owner. */
export const limitsMax = 8;

/** The largest cost that a verification can have, and so the largest bound on it. */
export const costMaxMax = 2_147_483_647;

/** Whether a list that was stored or sent can be the limits of a key or owner. */
export function areNamedRateLimits(limits: unknown): limits is readonly NamedRateLimit[] {
  if (!Array.isArray(limits) || limits.length === 0 || limits.length > limitsMax) return false;
  if (!limits.every((limit) => isLimitName(limit?.name) && isRateLimit(Object(limit.rule)))) return false;
  return new Set(limits.map(({ name }) => name)).size === limits.length;
}

function isLimitName(name: unknown): boolean {
  return typeof name === "string" && name.length <= 64 && /^[A-Za-z0-9_.-]+$/.test(name);
}

/** Without anything else that an object may have. */
export function toNamedRateLimit({ name, rule: { mode, limit, durationMs } }: NamedRateLimit): NamedRateLimit {
  return { name, rule: { mode, limit, durationMs } };
}

export function limitsOfKey(keyId: string, limits: readonly NamedRateLimit[]): readonly NamedLimit[] {
  return limits.map(({ name, rule }) => ({ name, rule, subject: limitOfKey(keyId, name) }));
}

export function limitsOfOwner(ownerId: string, limits: readonly NamedRateLimit[]): readonly NamedLimit[] {
  return limits.map(({ name, rule }) => ({ name, rule, subject: limitOfOwner(ownerId, name) }));
}
