import type { JsonObject } from "../domain/fields.ts";
import type { NamedLimit } from "../domain/limits.ts";
import type { RateLimit } from "../domain/rate-limit.ts";

const noMeta: JsonObject = Object.freeze({});

/** Most keys have no metadata. */
export function sharedMeta(meta: JsonObject): JsonObject {
  return Object.keys(meta).length === 0 ? noMeta : meta;
}

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

  limits(limits: readonly NamedLimit[]): readonly NamedLimit[] {
    return limits.map(({ name, rule, subject }) => ({ name: this.text(name), rule: this.rule(rule), subject }));
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
