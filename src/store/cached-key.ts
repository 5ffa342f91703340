import type { IpRanges } from "../domain/ip-allow.ts";
import type { JsonObject, Key, LastKnownBalance } from "../domain/key.ts";
import type { NamedLimit } from "../domain/limits.ts";
import type { RateLimit } from "../domain/rate-limit.ts";

/** A cached key. There can be millions of them, so that values which many share are kept once. */
export class CachedKey implements Key {
  readonly id: string;
  readonly apiId: string;
  readonly ownerId: string | undefined;
  readonly hasOwnerRecord: boolean;
  readonly name: string | undefined;
  readonly meta: JsonObject;
  readonly enabled: boolean;
  readonly expiresAtMs: number | undefined;
  readonly rateLimit: RateLimit | undefined;
  readonly counter: LastKnownBalance | undefined;
  /* Few keys have one of these: then they are fields of `FullCachedKey`, and the others take no room for them. */
  declare readonly limits: readonly NamedLimit[] | undefined;
  declare readonly costMax: number | undefined;
  declare readonly permissions: readonly string[] | undefined;
  declare readonly ipRanges: IpRanges | undefined;
  declare readonly secretExpiresAtMs: number | undefined;

  constructor(key: Key, interner: Interner) {
    this.id = key.id;
    this.apiId = interner.text(key.apiId);
    this.ownerId = key.ownerId;
    this.hasOwnerRecord = key.hasOwnerRecord;
    this.name = key.name;
    this.meta = Object.keys(key.meta).length === 0 ? noMeta : key.meta;
    this.enabled = key.enabled;
    this.expiresAtMs = key.expiresAtMs;
    this.rateLimit = key.rateLimit && interner.rule(key.rateLimit);
    this.counter = key.counter;
  }
}

/** A key with something that few have, or one that was found by a secret with an end. */
class FullCachedKey extends CachedKey {
  override readonly limits: readonly NamedLimit[] | undefined;
  override readonly costMax: number | undefined;
  override readonly permissions: readonly string[] | undefined;
  override readonly ipRanges: IpRanges | undefined;
  override readonly secretExpiresAtMs: number | undefined;

  constructor(key: Key, interner: Interner) {
    super(key, interner);
    this.limits = key.limits?.map(({ name, rule, subject }) => {
      return { name: interner.text(name), rule: interner.rule(rule), subject };
    });
    this.costMax = key.costMax;
    this.permissions = key.permissions && interner.texts(key.permissions);
    this.ipRanges = key.ipRanges && interner.numbers(key.ipRanges);
    this.secretExpiresAtMs = key.secretExpiresAtMs;
  }
}

export function toCachedKey(key: Key, interner: Interner): CachedKey {
  return isFull(key) ? new FullCachedKey(key, interner) : new CachedKey(key, interner);
}

function isFull({ limits, costMax, permissions, ipRanges, secretExpiresAtMs }: Key): boolean {
  const hasLimits = limits !== undefined || costMax !== undefined;
  return hasLimits || permissions !== undefined || ipRanges !== undefined || secretExpiresAtMs !== undefined;
}

const noMeta: JsonObject = Object.freeze({});
const internedMax = 10_000;
/** Longer values are not shared: so many of them would take too much room here. */
const internedLengthMax = 1000;

/** Keeps one copy of values that many keys share. Without it every look-up would add its own copy. */
export class Interner {
  readonly #texts = new Map<string, string>();
  readonly #rules = new Map<string, RateLimit>();
  readonly #textLists = new Map<string, readonly string[]>();
  readonly #numberLists = new Map<string, readonly number[]>();

  text(text: string): string {
    return intern(this.#texts, text, text);
  }

  /** None of the texts contains a space. */
  texts(list: readonly string[]): readonly string[] {
    return intern(this.#textLists, list.join(" "), list);
  }

  numbers(list: readonly number[]): readonly number[] {
    return intern(this.#numberLists, list.join(" "), list);
  }

  rule(rule: RateLimit): RateLimit {
    return intern(this.#rules, `${rule.mode} ${rule.limit} ${rule.durationMs}`, rule);
  }
}

function intern<Value>(known: Map<string, Value>, name: string, value: Value): Value {
  if (name.length > internedLengthMax) return value;
  const first = known.get(name);
  if (first !== undefined) return first;
  // Cleared when full, so that values which no key uses any more do not stay forever.
  if (known.size >= internedMax) known.clear();
  known.set(name, value);
  return value;
}
