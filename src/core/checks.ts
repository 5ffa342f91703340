import { InvalidMessage } from "./wire.ts";

/*
 * Checks of what an edge sends as JSON. A coordinator checks it as a public method checks its caller: what is stored is
 * answered to others, and what a database cannot take would fail for others too.
 */

/** The value, if an edge of ours can have sent it. Throws `InvalidMessage` otherwise. */
export type Check<Value> = (value: unknown, name: string) => Value;

export function impossible(name: string): InvalidMessage {
  return new InvalidMessage(`an impossible ${name}`);
}

/** 1 to so many characters. Postgres cannot store a zero character, and no engine half of a surrogate pair. */
function textUpTo(charactersMax: number): Check<string> {
  return (value, name) => {
    // A character takes two places at most. A longer text is not taken apart to count them.
    const isShort = typeof value === "string" && value.length > 0 && value.length <= 2 * charactersMax;
    if (!isShort || [...value].length > charactersMax || value.includes("\0") || !value.isWellFormed())
      throw impossible(name);
    return value;
  };
}

export const text = textUpTo(255);

/** What a counter counts for: the id of a key, or of an owner with a mark of two characters before it. */
export const counterSubject = textUpTo(257);

/** What a limit counts for. The longest are those of free-standing limits: three texts of callers and some numbers. */
export const limitSubject = textUpTo(650);

/** A text of which every character is one of the pattern's. */
export function textOf(pattern: RegExp, lengthMax: number): Check<string> {
  return (value, name) => {
    if (typeof value !== "string" || value.length > lengthMax || !pattern.test(value)) throw impossible(name);
    return value;
  };
}

/** A text with this property, which bounds its length. */
export function textThat(is: (text: string) => boolean): Check<string> {
  return (value, name) => {
    if (typeof value !== "string" || !is(value)) throw impossible(name);
    return value;
  };
}

/** A SHA-256 digest as base64url. */
export const digest = textOf(/^[A-Za-z0-9_-]{43}$/, 43);

export const truth: Check<boolean> = (value, name) => {
  if (typeof value !== "boolean") throw impossible(name);
  return value;
};

export function wholeNumber(min: number, max: number): Check<number> {
  return (value, name) => {
    const isPossible = typeof value === "number" && Number.isSafeInteger(value) && value >= min && value <= max;
    if (!isPossible) throw impossible(name);
    return value;
  };
}

/** Unix time in milliseconds, up to the end of year 9999. */
export const moment = wholeNumber(1, 253_402_300_799_999);

export function oneOf<const Choice extends string>(...choices: readonly Choice[]): Check<Choice> {
  return (value, name) => {
    if (!choices.includes(value as Choice)) throw impossible(name);
    return value as Choice;
  };
}

/** Of a field that a core sets by itself. */
export const absent: Check<undefined> = (value, name) => {
  if (value !== undefined) throw impossible(name);
};

export function optional<Value>(check: Check<Value>): Check<Value | undefined> {
  return (value, name) => (value === undefined ? undefined : check(value, name));
}

export function orNull<Value>(check: Check<Value>): Check<Value | null> {
  return (value, name) => (value === null ? null : check(value, name));
}

export function list<Value>(check: Check<Value>, most: number): Check<readonly Value[]> {
  return (value, name) => {
    if (!Array.isArray(value) || value.length > most) throw impossible(name);
    return value.map((one: unknown) => check(one, name));
  };
}

/** A list that is not empty: where an empty one came from, it would be absent. */
export function someOf<Value>(check: Check<Value>, most: number): Check<readonly Value[]> {
  const checkList = list(check, most);
  return (value, name) => {
    const checked = checkList(value, name);
    if (checked.length === 0) throw impossible(name);
    return checked;
  };
}

/** An object with these fields and no others. */
export function object<Value extends object>(
  fields: {
    readonly [Name in keyof Value]-?: Check<Value[Name]>;
  },
): Check<Value> {
  const checks = Object.entries(fields) as [string, Check<unknown>][];
  return (value, name) => {
    if (typeof value !== "object" || value === null || Array.isArray(value)) throw impossible(name);
    const given = value as Readonly<Record<string, unknown>>;
    for (const field of Object.keys(given)) if (!Object.hasOwn(fields, field)) throw impossible(name);
    return Object.fromEntries(checks.map(([field, check]) => [field, check(given[field], field)])) as Value;
  };
}

/**
 * More than the largest command takes: an import whose request has 64 KB, of which each byte may take six characters.
 * Reading a longer one would take time from others.
 */
const jsonMax = 524_288;

/** The value that a JSON text stands for, checked. */
export function fromJson<Value>(json: string, check: Check<Value>, name: string): Value {
  if (json.length > jsonMax) throw impossible(name);
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    throw impossible(name);
  }
  return check(value, name);
}
