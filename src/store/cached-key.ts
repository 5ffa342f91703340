import type { JsonObject, Key, LastKnownBalance } from "../domain/key.ts";
import type { RateLimit } from "../domain/rate-limit.ts";

/** A cached key. There can be millions of them, so that values which many share are kept once. */
export class CachedKey implements Key {
  readonly id: string;
  readonly apiId: string;
  readonly ownerId: string | undefined;
  readonly name: string | undefined;
  readonly meta: JsonObject;
  readonly enabled: boolean;
  readonly expiresAtMs: number | undefined;
  readonly rateLimit: RateLimit | undefined;
  readonly counter: LastKnownBalance | undefined;
  /** Hardly any key has it: then it is a field of `EndingCachedKey`, and the others take no room for it. */
  declare readonly secretExpiresAtMs: number | undefined;

  constructor(key: Key, interner: Interner) {
    this.id = key.id;
    this.apiId = interner.text(key.apiId);
    this.ownerId = key.ownerId;
    this.name = key.name;
    this.meta = Object.keys(key.meta).length === 0 ? noMeta : key.meta;
    this.enabled = key.enabled;
    this.expiresAtMs = key.expiresAtMs;
    this.rateLimit = key.rateLimit && interner.rule(key.rateLimit);
    this.counter = key.counter;
  }
}

/** A key that was found by a secret with an end. */
class EndingCachedKey extends CachedKey {
  override readonly secretExpiresAtMs: number;

  constructor(key: Key, interner: Interner, secretExpiresAtMs: number) {
    super(key, interner);
    this.secretExpiresAtMs = secretExpiresAtMs;
  }
}

export function toCachedKey(key: Key, interner: Interner): CachedKey {
  const { secretExpiresAtMs } = key;
  return secretExpiresAtMs === undefined
    ? new CachedKey(key, interner)
    : new EndingCachedKey(key, interner, secretExpiresAtMs);
}

const noMeta: JsonObject = Object.freeze({});
const internedMax = 10_000;

/** Keeps one copy of values that many keys share. Without it every look-up would add its own copy. */
export class Interner {
  readonly #texts = new Map<string, string>();
  readonly #rules = new Map<string, RateLimit>();

  text(text: string): string {
    return intern(this.#texts, text, text);
  }

  rule(rule: RateLimit): RateLimit {
    return intern(this.#rules, `${rule.mode} ${rule.limit} ${rule.durationMs}`, rule);
  }
}

function intern<Value>(known: Map<string, Value>, name: string, value: Value): Value {
  const first = known.get(name);
  if (first !== undefined) return first;
  // Cleared when full, so that values which no key uses any more do not stay forever.
  if (known.size >= internedMax) known.clear();
  known.set(name, value);
  return value;
}
