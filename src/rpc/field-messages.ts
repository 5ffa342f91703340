import type { JsonObject as JsonMessage } from "@bufbuild/protobuf";
import type { NamedRatelimit, Ratelimit, Refill } from "../../gen/latchkey/v1/keys_pb.js";
import type { NamedRatelimitUpdate, RatelimitUpdate, RefillUpdate } from "../../gen/latchkey/v1/updates.ts";
import {
  defaultsFields,
  type Field,
  type Fields,
  type KeyDefaults,
  type Kind,
  type NamedRateLimitPart,
  type Part,
  type PartsOf,
  type PropertiesOf,
  type Stored,
} from "../domain/fields.ts";
import type { NamedRateLimit } from "../domain/limits.ts";
import type { RateLimit } from "../domain/rate-limit.ts";
import { nextBoundaryMs } from "../domain/refill-calendar.ts";
import type { RefillRule, Refill as StoredRefill } from "../domain/usage.ts";
import { checkMeta } from "./check-meta.ts";

/* Described fields in messages: in creations, in updates and as they are read. */

/** How a value of each kind is in messages, where that is not the value itself. */
interface Form {
  /** In a creation. */
  readonly given?: (value: never) => unknown;
  /** In an update, where it can be a part. Absent: as in a creation. */
  readonly changed?: (value: never) => unknown;
  /** As it is read. Called for an absent value too. */
  readonly shown?: (value: never) => unknown;
}

const list: Form = {
  given: unlessEmpty,
  changed: (texts) => texts,
  shown: (texts?: readonly string[]) => [...(texts ?? [])],
};

const forms: { readonly [Name in Kind]?: Form } = {
  json: { given: (meta: JsonMessage) => checkMeta(meta) },
  texts: list,
  addresses: list,
  rateLimit: { given: toRateLimit, changed: toRateLimitPart, shown: (rule?: RateLimit) => rule && toRatelimit(rule) },
  rateLimits: {
    given: (limits: readonly NamedRatelimit[]) => unlessEmpty(limits)?.map(toNamedRateLimit),
    changed: (limits: readonly NamedRatelimitUpdate[]) => limits.map(toNamedRateLimitPart),
    shown: (limits: readonly NamedRateLimit[] = []) => limits.map(({ name, rule }) => ({ name, ...toRatelimit(rule) })),
  },
  refill: {
    given: toRefillRule,
    changed: toRefillPart,
    shown: (refill?: StoredRefill) => refill && toRefillState(refill),
  },
  defaults: {
    given: (defaults: object) => propertiesIn(defaultsFields, defaults),
    changed: (defaults: object) => changesIn(defaultsFields, defaults),
    shown: (defaults: KeyDefaults) => (isEmpty(defaults) ? undefined : shownFields(defaultsFields, defaults)),
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
export function shownFields(fields: Fields, values: object): Values {
  const shown = Object.entries(fields).map(([name, { kind, publicName = name }]) => {
    const value = (values as Values)[name];
    const form = forms[kind]?.shown as Convert | undefined;
    return [publicName, form === undefined ? value : form(value)];
  });
  return Object.fromEntries(shown);
}

/** A resource as it is read, but for its id. */
export function shownResource(fields: Fields, stored: Stored & Values): Values {
  const { createdAtMs: createdAt, updatedAtMs: updatedAt, version } = stored;
  return { ...shownFields(fields, stored), createdAt, updatedAt, version };
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

/** The message's rules allow no other interval. */
function toRefillRule({ interval, amount, carryOver }: Refill): RefillRule {
  return { interval: interval as RefillRule["interval"], amount, carryOver };
}

function toRefillPart({ interval, amount, carryOver }: RefillUpdate): Part<RefillRule> {
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
  return { mode: async === undefined ? undefined : modeOf(async), limit, durationMs: duration };
}

function toNamedRateLimitPart({ name, ...rule }: NamedRatelimitUpdate): NamedRateLimitPart {
  return { name, rule: toRateLimitPart(rule) };
}

function modeOf(async: boolean): RateLimit["mode"] {
  return async ? "local" : "strict";
}

export function toRateLimit({ async = true, limit, duration }: Omit<Ratelimit, "$typeName">): RateLimit {
  return { mode: modeOf(async), limit, durationMs: duration };
}

function toNamedRateLimit({ name, ...rule }: NamedRatelimit): NamedRateLimit {
  return { name, rule: toRateLimit(rule) };
}

function toRatelimit({ mode, limit, durationMs }: RateLimit) {
  return { async: mode === "local", limit, duration: durationMs };
}
