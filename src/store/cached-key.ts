import type { BalanceSeen, JsonObject, Key } from "../domain/key.ts";
import type { RateLimit } from "../domain/rate-limit.ts";

/** A key as it is remembered: one object for it and its time, since there can be millions of them. */
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
  /** In whole milliseconds, which for some weeks of monotonic time take no room of their own. */
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

/** One copy of what many keys have alike: every look-up brings its own. */
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
  // Begun anew now and then: what no key has any more is not kept for ever.
  if (known.size >= alikeMax) known.clear();
  known.set(name, value);
  return value;
}
