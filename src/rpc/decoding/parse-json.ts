import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { DEPTH_MAX, invalid, TOO_DEEP } from "../invalid-request.ts";

/** The names and indexes that lead to a value, as the caller sent them. */
export type Trail = readonly (string | number)[];

/**
 * Parses a body as RFC 8259 JSON, or throws a `InvalidRequest`.
 *
 * Stricter than `JSON.parse`, which keeps the last of duplicate names, rounds large integers, and accepts text that
 * a database cannot store. Every parser reads an accepted body in the same way. Takes time linear in the body.
 *
 * `printPath` makes the path of an error. It decides which names an error may hold: the parser does not know which of them
 * are the contract's and which were chosen by the caller.
 */
export function parseJson(bytes: Uint8Array, printPath: (trail: Trail) => string): JsonValue {
  if (bytes.length === 0) throw invalid("", "is empty");
  return new Parser(decodeUtf8(bytes), printPath).parseDocument();
}

// A byte order mark is kept, so that the parser refuses it as it refuses any other character before the value.
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function decodeUtf8(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw invalid("", "is not valid UTF-8");
  }
}

const NUMBER = /-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?/y;
const HEX4 = /[0-9a-fA-F]{4}/y;
const ESCAPES: Readonly<Record<string, string>> = {
  '"': '"',
  "\\": "\\",
  "/": "/",
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
};

// Characters are compared by their codes: a text of one character for each byte would take twice the time.
const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_BRACKET = 0x5d;
const LETTER_F = 0x66;
const LETTER_N = 0x6e;
const LETTER_T = 0x74;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const FIRST_PRINTABLE = 0x20;

/**
 * No object that is accepted has more, and no list: 16 KB of metadata have room for 2 350 names, and for 8 190 elements.
 * Larger ones are slow to build.
 */
export const MEMBERS_MAX = 2_500;
export const TOO_MANY_MEMBERS = `has more than ${MEMBERS_MAX} fields`;
export const ELEMENTS_MAX = 8_192;

/** Recursive descent. `DEPTH_MAX` bounds the recursion, so no input can exhaust the stack. */
class Parser {
  readonly #text: string;
  readonly #printPath: (trail: Trail) => string;
  #at = 0;
  /** Names and indexes that lead to the value being parsed; its length is the nesting. */
  readonly #trail: (string | number)[] = [];

  constructor(text: string, printPath: (trail: Trail) => string) {
    this.#text = text;
    this.#printPath = printPath;
  }

  parseDocument(): JsonValue {
    this.#skipSpace();
    const value = this.#parseValue();
    this.#skipSpace();
    if (this.#at < this.#text.length) this.#failSyntax("nothing more");
    return value;
  }

  #parseValue(): JsonValue {
    const first = this.#text.charCodeAt(this.#at);
    if (first === OPEN_BRACE) return this.#parseObject();
    if (first === OPEN_BRACKET) return this.#parseArray();
    if (first === QUOTE) return this.#parseString();
    if (first === LETTER_T) return this.#parseLiteral("true", true);
    if (first === LETTER_F) return this.#parseLiteral("false", false);
    if (first === LETTER_N) return this.#parseLiteral("null", null);
    return this.#parseNumber();
  }

  #parseObject(): JsonObject {
    this.#checkDepth();
    const object: JsonObject = {};
    this.#at++;
    this.#skipSpace();
    if (this.#take(CLOSE_BRACE)) return object;
    let members = 0;
    do {
      if (++members > MEMBERS_MAX) this.#fail(TOO_MANY_MEMBERS);
      this.#skipSpace();
      if (this.#text.charCodeAt(this.#at) !== QUOTE) this.#failSyntax("a name");
      const name = this.#parseString();
      // Assigned to a plain object it would replace the prototype instead of becoming a field.
      if (name === "__proto__") this.#fail("has a field with a reserved name");
      if (Object.hasOwn(object, name)) this.#fail("has the same field twice");
      this.#skipSpace();
      if (!this.#take(COLON)) this.#failSyntax("':'");
      this.#skipSpace();
      this.#trail.push(name);
      object[name] = this.#parseValue();
      this.#trail.pop();
      this.#skipSpace();
    } while (this.#take(COMMA));
    if (!this.#take(CLOSE_BRACE)) this.#failSyntax("',' or '}'");
    return object;
  }

  #parseArray(): JsonValue[] {
    this.#checkDepth();
    this.#at++;
    this.#skipSpace();
    if (this.#take(CLOSE_BRACKET)) return [];
    const depth = this.#trail.length;
    this.#trail[depth] = 0;
    // An array that is made with its first element has room for one: one that is made empty gets room for 17 at its first.
    const array = [this.#parseValue()];
    this.#skipSpace();
    while (this.#take(COMMA)) {
      if (array.length === ELEMENTS_MAX) {
        this.#trail.length = depth;
        this.#fail(`must contain no more than ${ELEMENTS_MAX} item(s)`);
      }
      this.#skipSpace();
      this.#trail[depth] = array.length;
      array.push(this.#parseValue());
      this.#skipSpace();
    }
    this.#trail.length = depth;
    if (!this.#take(CLOSE_BRACKET)) this.#failSyntax("',' or ']'");
    return array;
  }

  #parseString(): string {
    let decoded = "";
    let sliceStart = ++this.#at;
    for (;;) {
      const code = this.#text.charCodeAt(this.#at);
      if (code === QUOTE) break;
      if (code === BACKSLASH) {
        decoded += this.#text.slice(sliceStart, this.#at) + this.#parseEscape();
        sliceStart = this.#at;
      } else if (code >= FIRST_PRINTABLE) {
        this.#at++;
      } else {
        // A control character, or NaN: the end of the text.
        this.#failSyntax("the rest of a string");
      }
    }
    decoded += this.#text.slice(sliceStart, this.#at++);
    // The database cannot store these: Postgres refuses NUL, and UTF-8 has no lone surrogates.
    if (decoded.includes("\0")) this.#fail("must not contain the NUL character");
    if (!decoded.isWellFormed()) this.#fail("must not contain half of a surrogate pair");
    return decoded;
  }

  #parseEscape(): string {
    const letter = this.#text[this.#at + 1] ?? "";
    if (letter === "u") {
      HEX4.lastIndex = this.#at + 2;
      const hex = HEX4.exec(this.#text)?.[0];
      if (hex === undefined) this.#failSyntax("an escape sequence");
      this.#at += 6;
      return String.fromCharCode(Number.parseInt(hex, 16));
    }
    const character = ESCAPES[letter];
    if (character === undefined) this.#failSyntax("an escape sequence");
    this.#at += 2;
    return character;
  }

  #parseNumber(): number {
    NUMBER.lastIndex = this.#at;
    const match = NUMBER.exec(this.#text);
    if (match === null) this.#failSyntax("a value");
    const [literal, fraction, exponent] = match;
    const value = Number(literal);
    if (fraction === undefined && exponent === undefined && !Number.isSafeInteger(value)) {
      this.#fail(`must be between ${Number.MIN_SAFE_INTEGER} and ${Number.MAX_SAFE_INTEGER}`);
    }
    if (!Number.isFinite(value)) this.#fail("must be a finite number");
    this.#at += literal.length;
    return value;
  }

  #parseLiteral<T extends boolean | null>(literal: string, value: T): T {
    if (!this.#text.startsWith(literal, this.#at)) this.#failSyntax("a value");
    this.#at += literal.length;
    return value;
  }

  #take(code: number): boolean {
    if (this.#text.charCodeAt(this.#at) !== code) return false;
    this.#at++;
    return true;
  }

  #skipSpace(): void {
    while (isSpace(this.#text.charCodeAt(this.#at))) this.#at++;
  }

  #checkDepth(): void {
    if (this.#trail.length >= DEPTH_MAX) throw invalid("", TOO_DEEP);
  }

  #failSyntax(expected: string): never {
    throw invalid("", `is not valid JSON: expected ${expected} at position ${this.#at}`);
  }

  #fail(message: string): never {
    throw invalid(this.#printPath(this.#trail), message);
  }
}

function isSpace(code: number): boolean {
  return code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09;
}
