import type { NamedRatelimitUpdate, RatelimitUpdate, RefillUpdate } from "../../gen/latchkey/v1/updates.ts";
import {
  defaultsFields,
  type Field,
  type Fields,
  type JsonObject,
  type KeyDefaults,
  type Kind,
  type NamedRateLimitPart,
  type Part,
  type PartsOf,
  type PropertiesOf,
  type Stored,
} from "../domain/fields.ts";
import type { NamedRateLimit } from "../domain/limits.ts";
import { isDeeperThan, metaBytesMax, metaDepthMax } from "../domain/meta.ts";
import type { RateLimit } from "../domain/rate-limit.ts";
import { nextBoundaryMs } from "../domain/refill-calendar.ts";
import { type Resource, resources } from "../domain/resources.ts";
import { ownSpentOf, type RefillRule, type Refill as StoredRefill, type UsageCounter } from "../domain/usage.ts";
import { invalid } from "./invalid-request.ts";

/* Described fields in messages: in creations, in updates and as they are read. */

/** How a value of each kind is in messages, where that is not the value itself. */
interface Form {
  /** In a creation. */
  readonly given?: (value: never) => unknown;
  /** In an update, where it can be a part. Absent: as in a creation. */
  readonly changed?: (value: never) => unknown;
  /** As it is read. Called for an absent value too. */
  readonly read?: (value: never) => unknown;
}

const list: Form = {
  given: unlessEmpty,
  changed: (texts) => texts,
  read: (texts?: readonly string[]) => [...(texts ?? [])],
};

const forms: { readonly [Name in Kind]?: Form } = {
  json: { given: checkMeta },
  texts: list,
  addresses: list,
  rateLimit: { given: toRateLimit, changed: toRateLimitPart, read: (rule?: RateLimit) => rule && toRatelimit(rule) },
  rateLimits: {
    given: (limits: readonly NamedRatelimitUpdate[]) => unlessEmpty(limits)?.map(named(toRateLimit)),
    changed: (limits: readonly NamedRatelimitUpdate[]) => limits.map(named(toRateLimitPart)),
    read: (limits: readonly NamedRateLimit[] = []) => limits.map(({ name, rule }) => ({ name, ...toRatelimit(rule) })),
  },
  refill: { given: toRefillRule, read: (refill?: StoredRefill) => refill && toRefillState(refill) },
  defaults: {
    given: (defaults: object) => propertiesIn(defaultsFields, defaults),
    changed: (defaults: object) => changesIn(defaultsFields, defaults),
    read: (defaults: KeyDefaults) => (isEmpty(defaults) ? undefined : fieldsAsRead(defaultsFields, defaults)),
  },
};

type Convert = (value: unknown) => unknown;

/** The fields that a creation gives something new. Throws `InvalidRequest`. */
export function propertiesIn<All extends Fields>(fields: All, message: object): PropertiesOf<All> {
  return converted(fields, ({ kind, byDefault }, name) => {
    const value = (message as Values)[name];
    const form = forms[kind]?.given as Convert | undefined;
    return value === undefined ? byDefault : form === undefined ? value : form(value);
  }) as PropertiesOf<All>;
}

/** What an update says of the fields, by the names of its changes. Throws `InvalidRequest`. */
export function changesIn<All extends Fields>(fields: All, changes: object): PartsOf<All> {
  const all = converted(fields, ({ kind, byDefault }, name) => {
    const value = (changes as Values)[name];
    const form = (forms[kind]?.changed ?? forms[kind]?.given) as Convert | undefined;
    if (value === null && kind === "json") return byDefault;
    return value === undefined || value === null || form === undefined ? value : form(value);
  });
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined)) as PartsOf<All>;
}

/** The fields as they are read, by their names in the contract. */
function fieldsAsRead(fields: Fields, values: object): Values {
  const read = Object.entries(fields).map(([name, { kind, publicName = name }]) => {
    const value = (values as Values)[name];
    const form = forms[kind]?.read as Convert | undefined;
    return [publicName, form === undefined ? value : form(value)];
  });
  return Object.fromEntries(read);
}

/** What every resource has of its message: its id, its described fields, and its counter if it has one. */
export function toResourceMessage(
  resource: Resource,
  stored: Stored & { readonly counter?: UsageCounter | undefined },
): Values {
  const { id, counter, createdAtMs: createdAt, updatedAtMs: updatedAt, version } = stored;
  const fields = fieldsAsRead(resources[resource], { ...stored, refill: counter?.refill });
  const { remaining } = counter ?? {};
  return {
    ...fields,
    [`${resource}Id`]: id,
    remaining,
    spent: counter && ownSpentOf(counter),
    createdAt,
    updatedAt,
    version,
  };
}

type Values = { readonly [name: string]: unknown };

/** `of`: a field, and its name in the contract. */
function converted(fields: Fields, of: (field: Field, publicName: string) => unknown): Values {
  return Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, of(field, field.publicName ?? name)]));
}

function isEmpty(values: object): boolean {
  return Object.values(values).every((value) => value === undefined);
}

/** A list that is absent is empty in a message. */
function unlessEmpty<One>(list: readonly One[]): readonly One[] | undefined {
  return list.length === 0 ? undefined : list;
}

/** Every verification returns the metadata, so it must be small. Proto rules cannot express these two bounds. */
function checkMeta(meta: JsonObject): JsonObject {
  if (isDeeperThan(metaDepthMax, meta)) throw invalid("meta", `must be nested at most ${metaDepthMax} deep`);
  if (Buffer.byteLength(JSON.stringify(meta)) > metaBytesMax)
    throw invalid("meta", `must be at most ${metaBytesMax} bytes as JSON`);
  return meta;
}

/** Also a part of one. The message's rules allow no other interval. */
function toRefillRule({ interval, amount, carryOver }: RefillUpdate): Part<RefillRule> {
  return { interval: interval as RefillRule["interval"] | undefined, amount, carryOver };
}

/** As it is read. A rule of defaults refills nothing. */
function toRefillState({ interval, amount, carryOver, refilledThroughMs }: Part<StoredRefill> & RefillRule) {
  const rule = { interval, amount, carryOver };
  return refilledThroughMs === undefined
    ? rule
    : { ...rule, nextRefillAt: nextBoundaryMs(interval, refilledThroughMs) };
}

function toRateLimitPart({ async, limit, duration }: RatelimitUpdate): Part<RateLimit> {
  return { mode: async === undefined ? undefined : async ? "local" : "strict", limit, durationMs: duration };
}

function toRateLimit(rule: RatelimitUpdate): Part<RateLimit> {
  return toRateLimitPart({ ...rule, async: rule.async ?? true });
}

function named(toRule: typeof toRateLimit): (limit: NamedRatelimitUpdate) => NamedRateLimitPart {
  return ({ name, ...rule }) => ({ name, rule: toRule(rule) });
}

function toRatelimit({ mode, limit, durationMs }: RateLimit) {
  return { async: mode === "local", limit, duration: durationMs };
}
