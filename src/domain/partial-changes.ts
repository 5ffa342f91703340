import type { ApiFieldChanges, KeyDefaults, StoredApi } from "./api.ts";
import type { KeyFieldChanges, StoredKey } from "./key.ts";
import type { NamedRateLimit } from "./limits.ts";
import type { OwnerFieldChanges, StoredOwner } from "./owner.ts";
import type { RateLimit } from "./rate-limit.ts";
import type { RefillRule } from "./usage.ts";

/*
 * What an update says of a rule may be a part of it: the rest stays as it is stored. The stores only know whole rules, so a
 * change is completed by what was read before, and is made only if that is still what is stored.
 */

/** A rule as far as an update says it. */
export type Part<Rule> = { readonly [Name in keyof Rule]?: Rule[Name] | undefined };

export interface NamedRateLimitPart {
  readonly name: string;
  readonly rule: Part<RateLimit>;
}

/** What an update can say of the rules of a key or an owner. `rateLimits` are all of them: one that is left out is removed. */
export interface RuleParts {
  readonly rateLimit?: Part<RateLimit> | null | undefined;
  readonly rateLimits?: readonly NamedRateLimitPart[] | null | undefined;
  readonly refill?: Part<RefillRule> | null | undefined;
}

export type KeyChangeParts = Omit<KeyFieldChanges, keyof RuleParts> & RuleParts;
export type OwnerChangeParts = Omit<OwnerFieldChanges, keyof RuleParts> & Omit<RuleParts, "rateLimit">;

/** What an update can say of an API's defaults: null removes one. */
export type DefaultsParts = {
  readonly [Name in Exclude<keyof KeyDefaults, keyof RuleParts>]?: KeyDefaults[Name] | null;
} & Omit<RuleParts, "rateLimits">;

export interface ApiChangeParts extends Omit<ApiFieldChanges, "defaults"> {
  /** Null removes all. */
  readonly defaults?: DefaultsParts | null | undefined;
}

/** A rule is set in part, and nothing is stored that would complete it. `path` is that of the field that is wrong. */
export class IncompleteRule extends Error {
  override readonly name = "IncompleteRule";
  readonly path: string;

  constructor(path: string, message: string) {
    super(message);
    this.path = path;
  }
}

/** Whether the changes can be made without a look at what is stored. */
export function areWhole({ rateLimit, rateLimits, refill }: RuleParts): boolean {
  const isWhole = rateLimits?.every(({ rule }) => isWholeRateLimit(rule)) ?? true;
  return isWhole && isWholeRateLimit(rateLimit) && isWholeRefill(refill);
}

/** Throws `IncompleteRule`. */
export function completeKeyChanges(changes: KeyChangeParts, stored: StoredKey): KeyFieldChanges {
  return { ...changes, ...completeRules(changes, { ...stored, refill: stored.counter?.refill }) };
}

/** Throws `IncompleteRule`. */
export function completeOwnerChanges(changes: OwnerChangeParts, stored: StoredOwner): OwnerFieldChanges {
  const { rateLimits, refill } = completeRules(changes, { ...stored, refill: stored.counter?.refill });
  return { ...changes, rateLimits, refill };
}

/** Throws `IncompleteRule`. */
export function completeApiChanges({ name, defaults }: ApiChangeParts, stored: StoredApi): ApiFieldChanges {
  return { name, defaults: defaults === null ? {} : defaults && completeDefaults(defaults, stored.defaults) };
}

function completeDefaults(parts: DefaultsParts, stored: KeyDefaults): KeyDefaults {
  const { rateLimit, refill } = completeRules(parts, stored, "defaults.");
  const completed = {
    prefix: changed(parts.prefix, stored.prefix),
    byteLength: changed(parts.byteLength, stored.byteLength),
    remaining: changed(parts.remaining, stored.remaining),
    costMax: changed(parts.costMax, stored.costMax),
    rateLimit: changed(rateLimit, stored.rateLimit),
    refill: changed(refill, stored.refill),
  };
  if (completed.refill !== undefined && completed.remaining === undefined)
    throw new IncompleteRule("defaults.refill", "needs remaining: only a counter can be refilled");
  return completed;
}

function changed<Value>(value: Value | null | undefined, stored: Value | undefined): Value | undefined {
  return value === undefined ? stored : (value ?? undefined);
}

interface Rules {
  readonly rateLimit?: RateLimit | undefined;
  readonly rateLimits?: readonly NamedRateLimit[] | undefined;
  readonly refill?: RefillRule | undefined;
}

function completeRules({ rateLimit, rateLimits, refill }: RuleParts, stored: Rules, within = "") {
  const completeNamed = ({ name, rule }: NamedRateLimitPart, index: number) => {
    const before = stored.rateLimits?.find((limit) => limit.name === name)?.rule;
    return { name, rule: completeRateLimit(rule, before, `${within}ratelimits[${index}]`) };
  };
  return {
    rateLimit: rateLimit && completeRateLimit(rateLimit, stored.rateLimit, `${within}ratelimit`),
    rateLimits: rateLimits === null ? null : rateLimits?.map(completeNamed),
    refill: refill && completeRefill(refill, stored.refill, `${within}refill`),
  };
}

function completeRateLimit(part: Part<RateLimit>, stored: RateLimit | undefined, path: string): RateLimit {
  const { mode = stored?.mode ?? "local", limit = stored?.limit, durationMs = stored?.durationMs } = part;
  if (limit === undefined || durationMs === undefined)
    throw new IncompleteRule(path, "needs limit and duration: there is no such rate limit yet");
  return { mode, limit, durationMs };
}

function completeRefill(part: Part<RefillRule>, stored: RefillRule | undefined, path: string): RefillRule {
  const { interval = stored?.interval, amount = stored?.amount, carryOver = stored?.carryOver ?? false } = part;
  if (interval === undefined || amount === undefined)
    throw new IncompleteRule(path, "needs interval and amount: there is no refill rule yet");
  return { interval, amount, carryOver };
}

function isWholeRateLimit(part: Part<RateLimit> | null | undefined): boolean {
  return !part || [part.mode, part.limit, part.durationMs].every((one) => one !== undefined);
}

function isWholeRefill(part: Part<RefillRule> | null | undefined): boolean {
  return !part || [part.interval, part.amount, part.carryOver].every((one) => one !== undefined);
}
