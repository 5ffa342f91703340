const quote = 0x22;
const backslash = 0x5c;
const firstPrintable = 0x20;
const asciiEnd = 0x80;
const zero = 0x30;
/** Every number of so many digits is a safe integer. */
const digitsMax = 15;

/**
 * Reads objects, lists, ASCII strings without escapes, whole numbers and booleans, out of one text. Its methods return
 * undefined for anything else, and then the text must be left to the strict decoder: where this one stands is unknown.
 *
 * The fields are public: every request creates a reader, and private fields would double its cost.
 */
export class JsonReader {
  readonly bytes: Buffer;
  /** The same as text, of which strings are cut: one call out of JavaScript for all of them. */
  readonly text: string;
  readonly start: number;
  readonly end: number;
  at: number;
  /** Where the name begins that was read last. */
  nameAt: number;

  constructor(bytes: Buffer, start: number, end: number) {
    this.bytes = bytes;
    this.text = bytes.toString("latin1", start, end);
    this.start = start;
    this.end = end;
    this.at = start;
    this.nameAt = start;
  }

  /** The hash of an object's first name; `noName` if it has none, `notAName` if the text goes on in another way. */
  readFirstName(): number {
    if (!this.takeAfterSpace("{")) return notAName;
    return this.takeAfterSpace("}") ? noName : this.readName();
  }

  /** The hash of the next name, when the value of the last one is read. */
  readNextName(): number {
    if (this.takeAfterSpace(",")) return this.readName();
    return this.takeAfterSpace("}") ? noName : notAName;
  }

  /** Whether the name that was read last is this one: others may have its hash. */
  isName(name: string): boolean {
    const { bytes, nameAt } = this;
    if (bytes[nameAt + name.length] !== quote) return false;
    for (let i = 0; i < name.length; i++) if (bytes[nameAt + i] !== name.charCodeAt(i)) return false;
    return true;
  }

  /** A string of so many characters, which for ASCII are its bytes. */
  readText(min: number, max: number): string | undefined {
    if (!this.takeAfterSpace('"')) return undefined;
    const { bytes, end, at: start } = this;
    for (let i = start; i < end; i++) {
      const code = bytes[i] as number;
      if (code === quote) {
        if (i - start < min || i - start > max) return undefined;
        this.at = i + 1;
        return this.text.slice(start - this.start, i - this.start);
      }
      if (code < firstPrintable || code >= asciiEnd || code === backslash) return undefined;
    }
    return undefined;
  }

  /** A number without sign, fraction and exponent. What follows it shows whether these were its last digits. */
  readWhole(min: number, max: number): number | undefined {
    this.skipSpace();
    const { bytes, end, at: start } = this;
    let value = 0;
    let at = start;
    for (; at < end && at - start <= digitsMax; at++) {
      const digit = (bytes[at] as number) - zero;
      if (digit < 0 || digit > 9) break;
      value = value * 10 + digit;
    }
    const digits = at - start;
    if (digits === 0 || digits > digitsMax || (digits > 1 && bytes[start] === zero)) return undefined;
    this.at = at;
    return value >= min && value <= max ? value : undefined;
  }

  readBool(): boolean | undefined {
    this.skipSpace();
    const { text, start, at } = this;
    if (text.startsWith("true", at - start)) {
      this.at = at + 4;
      return true;
    }
    if (text.startsWith("false", at - start)) {
      this.at = at + 5;
      return false;
    }
    return undefined;
  }

  /** A list of so many messages. */
  readList<Message>(read: (json: JsonReader) => Message | undefined, min: number, max: number): Message[] | undefined {
    if (!this.takeAfterSpace("[")) return undefined;
    const items: Message[] = [];
    if (min === 0 && this.takeAfterSpace("]")) return items;
    do {
      const item = read(this);
      if (item === undefined || items.length === max) return undefined;
      items.push(item);
    } while (this.takeAfterSpace(","));
    return this.takeAfterSpace("]") && items.length >= min ? items : undefined;
  }

  /** Whether nothing but space follows. */
  isAtEnd(): boolean {
    this.skipSpace();
    return this.at === this.end;
  }

  /** Names are not made into strings: most of the time would go into that. */
  private readName(): number {
    if (!this.takeAfterSpace('"')) return notAName;
    const { bytes, end, at: start } = this;
    let hash = 0;
    for (let i = start; i < end; i++) {
      const code = bytes[i] as number;
      if (code === quote) {
        this.nameAt = start;
        this.at = i + 1;
        return this.takeAfterSpace(":") ? hash : notAName;
      }
      hash = addToHash(hash, code);
    }
    return notAName;
  }

  private takeAfterSpace(character: string): boolean {
    this.skipSpace();
    if (this.at >= this.end || this.bytes[this.at] !== character.charCodeAt(0)) return false;
    this.at++;
    return true;
  }

  private skipSpace(): void {
    const { bytes, end } = this;
    for (let { at } = this; at < end; this.at = ++at) {
      const code = bytes[at];
      if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return;
    }
  }
}

/** Not a hash: hashes are not negative. */
export const noName = -1;
const notAName = -2;

/** What a member with this name is found by. */
export function hashOf(name: string): number {
  let hash = 0;
  for (let i = 0; i < name.length; i++) hash = addToHash(hash, name.charCodeAt(i));
  return hash;
}

/** A hash has 30 bits, which V8 keeps without allocating. */
function addToHash(hash: number, code: number): number {
  return (Math.imul(hash, 31) + code) & 0x3fffffff;
}
