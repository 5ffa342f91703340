import type { IpRanges } from "./ip-allow.ts";
import type { NamedLimit, NamedRateLimit } from "./limits.ts";
import type { RateLimit } from "./rate-limit.ts";
import type { RefillRule } from "./usage.ts";

/*
 * Each stored resource is described once, by its fields: see `resources.ts`. Columns, changes, messages, what crosses the
 * link and what is cached follow from that description, each by the kind of a field.
 */

export type Json = null | boolean | number | string | readonly Json[] | JsonObject;
export type JsonObject = { readonly [name: string]: Json };

/** The values of each kind of field. Lists are not empty: without elements the field is absent. */
export interface KindValues {
  readonly text: string;
  readonly whole: number;
  /** Unix milliseconds. */
  readonly moment: number;
  readonly flag: boolean;
  readonly json: JsonObject;
  readonly texts: readonly string[];
  /** Addresses and ranges of them, as they were given. */
  readonly addresses: readonly string[];
  readonly rateLimit: RateLimit;
  readonly rateLimits: readonly NamedRateLimit[];
  readonly refill: RefillRule;
  readonly defaults: KeyDefaults;
}

export type Kind = keyof KindValues;

/** The fields of `defaults`: what a new key takes over where its request is silent. A refill rule comes with a counter only. */
export const defaultsFields = {
  prefix: { kind: "text" },
  byteLength: { kind: "whole" },
  rateLimit: { kind: "rateLimit", publicName: "ratelimit" },
  remaining: { kind: "whole" },
  refill: { kind: "refill" },
  costMax: { kind: "whole" },
} as const satisfies Fields;

export type DefaultsFields = typeof defaultsFields;

export type KeyDefaults = { readonly [Name in keyof DefaultsFields]?: PropertiesOf<DefaultsFields>[Name] };

/** A rule as far as an update says it. */
export type Part<Rule> = { readonly [Name in keyof Rule]?: Rule[Name] | undefined };

export interface NamedRateLimitPart {
  readonly name: string;
  readonly rule: Part<RateLimit>;
}

/** What an update can say of a field, where that is less than its value. */
interface KindParts {
  readonly rateLimit: Part<RateLimit>;
  readonly rateLimits: readonly NamedRateLimitPart[];
  readonly refill: Part<RefillRule>;
  readonly defaults: PartsOf<DefaultsFields>;
}

/** What a verification gets, where that is not the value itself. */
interface KindVerified {
  readonly addresses: IpRanges;
  readonly rateLimits: readonly NamedLimit[];
}

export interface Field {
  readonly kind: Kind;
  /** Where it is stored; of a `rateLimit` what the names of its columns begin with. Absent: with the counter. */
  readonly column?: string;
  /** Its name in the contract, where that is another one. */
  readonly publicName?: string;
  /** A field with a default always has a value: null sets the default. Any other is removed by null. */
  readonly byDefault?: unknown;
  /** The largest value of a whole number; the smallest is 1. */
  readonly max?: number;
  /** Whether a verification needs it. `rare`: few keys have it, and the others take no room for it in the cache. */
  readonly verified?: "common" | "rare";
  /** Whether many resources have the same text: then one copy is kept in memory. */
  readonly isShared?: boolean;
  /** Whether lists can be filtered by its value. */
  readonly isFilter?: boolean;
}

export type Fields = Readonly<Record<string, Field>>;

export type ValueOf<F extends Field> = KindValues[F["kind"]];
type Absent<F extends Field> = F extends { readonly byDefault: unknown } ? never : undefined;
type Removed<F extends Field> = F extends { readonly byDefault: unknown } ? never : null;

/** A resource's own fields, as they are stored or to be stored. */
export type PropertiesOf<All extends Fields> = {
  readonly [Name in keyof All]: ValueOf<All[Name]> | Absent<All[Name]>;
};

/** What becomes of the fields that are changed: null removes one, a value sets it. */
export type ChangesOf<All extends Fields> = {
  readonly [Name in keyof All]?: ValueOf<All[Name]> | Removed<All[Name]> | undefined;
};

/** What an update says of the fields: of rules perhaps a part. */
export type PartsOf<All extends Fields> = {
  readonly [Name in keyof All]?: PartOf<All[Name]> | null | undefined;
};

type PartOf<F extends Field> = F["kind"] extends keyof KindParts ? KindParts[F["kind"]] : ValueOf<F>;

/** Those of the fields that a verification needs. */
export type VerifiedOf<All extends Fields> = {
  readonly [Name in VerifiedNames<All>]: VerifiedValue<All[Name]> | Absent<All[Name]>;
};

type VerifiedNames<All extends Fields> = {
  [Name in keyof All]: All[Name] extends { readonly verified: string } ? Name : never;
}[keyof All];

type VerifiedValue<F extends Field> = F["kind"] extends keyof KindVerified ? KindVerified[F["kind"]] : ValueOf<F>;

/** Those of the fields that lists can be filtered by. */
export type FiltersOf<All extends Fields> = {
  readonly [Name in keyof All as All[Name] extends { readonly isFilter: true } ? Name : never]?:
    | ValueOf<All[Name]>
    | undefined;
};

/** What every resource has beside its own fields. */
export interface Stored {
  readonly id: string;
  readonly createdAtMs: number;
  /** When it was last changed. Verifications are no changes of it, nor are changes of what belongs to it. */
  readonly updatedAtMs: number;
  /** Counts changes, the creation included. */
  readonly version: number;
}
