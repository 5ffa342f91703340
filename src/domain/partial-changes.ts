import {
  type ChangesOf,
  type DefaultsFields,
  defaultsFields,
  type Field,
  type Fields,
  type KeyDefaults,
  type Kind,
  type NamedRateLimitPart,
  type Part,
  type PartsOf,
  type PropertiesOf,
} from "./fields.ts";
import type { NamedRateLimit } from "./limits.ts";
import type { RateLimit } from "./rate-limit.ts";
import type { RefillRule } from "./usage.ts";

/*
 * An update may contain only a part of a rule: the rest stays as it is stored. The stores only know whole rules, so a
 * change is completed by what was read before, and is made only if that is still what is stored.
 */

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
export function areWhole<All extends Fields>(fields: All, parts: PartsOf<All>): boolean {
  return Object.entries(parts).every(([name, part]) => part == null || (rulesOf(fields, name)?.isWhole(part) ?? true));
}

/** Each rule whole, and each field that null gives its default. Throws `IncompleteRule`. */
export function completeChanges<All extends Fields>(
  fields: All,
  parts: PartsOf<All>,
  stored: { readonly [Name in keyof All]?: unknown },
  within = "",
): ChangesOf<All> {
  const completed = Object.entries(parts).map(([name, part]) => {
    const { byDefault = null, publicName = name } = fields[name] as Field;
    const rules = part == null ? undefined : rulesOf(fields, name);
    const whole = rules === undefined ? part : rules.complete(part, stored[name], within + publicName);
    return [name, part === null ? byDefault : whole];
  });
  return Object.fromEntries(completed) as ChangesOf<All>;
}

/** How a field is changed in part. */
interface Rules {
  isWhole(part: unknown): boolean;
  complete(part: unknown, stored: unknown, path: string): unknown;
}

/** Undefined for fields that are only changed as a whole. */
function rulesOf(fields: Fields, name: string): Rules | undefined {
  return rules[fields[name]?.kind as Kind] as Rules | undefined;
}

const rules: { readonly [Name in Kind]?: unknown } = {
  rateLimit: { isWhole: isWholeRateLimit, complete: completeRateLimit },
  rateLimits: {
    isWhole: (parts: readonly NamedRateLimitPart[]) => parts.every(({ rule }) => isWholeRateLimit(rule)),
    // All of them: one that is left out is removed.
    complete: (parts: readonly NamedRateLimitPart[], stored: readonly NamedRateLimit[] | undefined, path: string) =>
      parts.map(({ name, rule }, index) => {
        const before = stored?.find((limit) => limit.name === name)?.rule;
        return { name, rule: completeRateLimit(rule, before, `${path}[${index}]`) };
      }),
  },
  refill: { isWhole: isWholeRefill, complete: completeRefill },
  defaults: { isWhole: () => false, complete: completeDefaults },
};

function completeRateLimit(part: Part<RateLimit>, stored: RateLimit | undefined, path: string): RateLimit {
  const { mode = stored?.mode ?? "local", limit = stored?.limit, durationMs = stored?.durationMs } = part;
  if (limit === undefined || durationMs === undefined)
    throw new IncompleteRule(path, "needs limit and duration: there is no such rate limit yet");
  return { mode, limit, durationMs };
}

function isWholeRateLimit({ mode, limit, durationMs }: Part<RateLimit>): boolean {
  return mode !== undefined && limit !== undefined && durationMs !== undefined;
}

function completeRefill(part: Part<RefillRule>, stored: RefillRule | undefined, path: string): RefillRule {
  const { interval = stored?.interval, amount = stored?.amount, carryOver = stored?.carryOver ?? false } = part;
  if (interval === undefined || amount === undefined)
    throw new IncompleteRule(path, "needs interval and amount: there is no refill rule yet");
  return { interval, amount, carryOver };
}

function isWholeRefill({ interval, amount, carryOver }: Part<RefillRule>): boolean {
  return interval !== undefined && amount !== undefined && carryOver !== undefined;
}

function completeDefaults(parts: PartsOf<DefaultsFields>, stored: KeyDefaults, path: string): KeyDefaults {
  const changes = completeChanges(defaultsFields, parts, stored, `${path}.`);
  const changed = Object.entries(changes).filter(([, value]) => value !== undefined);
  const merged: Partial<Record<keyof DefaultsFields, unknown>> = { ...stored, ...Object.fromEntries(changed) };
  const kept = Object.entries(merged).filter(([, value]) => value != null);
  const completed: Partial<PropertiesOf<DefaultsFields>> = Object.fromEntries(kept);
  if (completed.refill !== undefined && completed.remaining === undefined)
    throw new IncompleteRule(`${path}.refill`, "needs remaining: only a counter can be refilled");
  return completed;
}
