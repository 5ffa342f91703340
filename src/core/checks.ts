import { InvalidMessage } from "./wire.ts";

/* Checks of what an edge sends: a value that the database refuses would fail the calls of others too. */

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

/** A SHA-256 digest as base64url. */
export const digest: Check<string> = (value, name) => {
  if (typeof value !== "string" || !/^[A-Za-z0-9_-]{43}$/.test(value)) throw impossible(name);
  return value;
};

export function wholeNumber(min: number, max: number): Check<number> {
  return (value, name) => {
    const isPossible = typeof value === "number" && Number.isSafeInteger(value) && value >= min && value <= max;
    if (!isPossible) throw impossible(name);
    return value;
  };
}

export function optional<Value>(check: Check<Value>): Check<Value | undefined> {
  return (value, name) => (value === undefined ? undefined : check(value, name));
}
