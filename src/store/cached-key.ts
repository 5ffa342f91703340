import type { BalanceSeen, JsonObject, Key } from "../domain/key.ts";
import type { RateLimit } from "../domain/rate-limit.ts";

/** A cached key and its expiry in one object, since there can be millions of them. */
export class CachedKey implements Key {
  readonly id: string;
  readonly apiId: string;
  readonly ownerId: string | undefined;
  readonly name: string | undefined;
  readonly meta: JsonObject;
  readonly enabled: boolean;
  readonly expiresAtMs: number | undefined;
  readonly rateLimit: RateLimit | undefined;
  readonly counter: BalanceSeen | undefined;
  /** In whole milliseconds: for some weeks of monotonic time V8 then needs no extra memory for the number. */
  readonly untilMs: number;

  constructor(key: Key, untilMs: number, alike: Alike) {
    this.id = key.id;
    this.apiId = alike.text(key.apiId);
    this.ownerId = key.ownerId;
    this.name = key.name;
    this.meta = Object.keys(key.meta).length === 0 ? noMeta : key.meta;
    this.enabled = key.enabled;
    this.expiresAtMs = key.expiresAtMs;
    this.rateLimit = key.rateLimit && alike.rule(key.rateLimit);
    this.counter = key.counter;
    this.untilMs = untilMs;
  }
}

const noMeta: JsonObject = Object.freeze({});
const alikeMax = 10_000;

/** Keeps one copy of values that many keys share. Without it every look-up would add its own copy. */
export class Alike {
  readonly #texts = new Map<string, string>();
  readonly #rules = new Map<string, RateLimit>();

  text(text: string): string {
    return oneOf(this.#texts, text, text);
  }

  rule(rule: RateLimit): RateLimit {
    return oneOf(this.#rules, `${rule.mode} ${rule.limit} ${rule.durationMs}`, rule);
  }
}

function oneOf<Value>(known: Map<string, Value>, name: string, value: Value): Value {
  const first = known.get(name);
  if (first !== undefined) return first;
  // Cleared when full, so that values which no key uses any more do not stay forever.
  if (known.size >= alikeMax) known.clear();
  known.set(name, value);
  return value;
}
