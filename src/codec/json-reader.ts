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
  readonly text: string;
  at = 0;

  constructor(bytes: Buffer, start: number, end: number) {
    this.text = bytes.toString("latin1", start, end);
  }

  /** The name of an object's first member. Undefined if it has none, and "" if the text goes on in another way. */
  readFirstName(): string | undefined {
    if (!this.takeAfterSpace("{")) return notAName;
    return this.takeAfterSpace("}") ? undefined : this.readName();
  }

  /** The name of the next member, when the value of the last one is read. Undefined and "" as of the first. */
  readNextName(): string | undefined {
    if (this.takeAfterSpace(",")) return this.readName();
    return this.takeAfterSpace("}") ? undefined : notAName;
  }

  /** A string of so many characters. */
  readText(min: number, max: number): string | undefined {
    const value = this.readString();
    // The bounds are in characters, which for ASCII is the length.
    return value !== undefined && value.length >= min && value.length <= max ? value : undefined;
  }

  /** A number without sign, fraction and exponent. What follows it shows whether these were its last digits. */
  readWhole(min: number, max: number): number | undefined {
    this.skipSpace();
    const { text, at: start } = this;
    let value = 0;
    let at = start;
    for (; at - start <= digitsMax; at++) {
      const digit = text.charCodeAt(at) - zero;
      // Also at the end of the text, where it is NaN.
      if (!(digit >= 0 && digit <= 9)) break;
      value = value * 10 + digit;
    }
    const digits = at - start;
    if (digits === 0 || digits > digitsMax || (digits > 1 && text.charCodeAt(start) === zero)) return undefined;
    this.at = at;
    return value >= min && value <= max ? value : undefined;
  }

  readBool(): boolean | undefined {
    this.skipSpace();
    if (this.text.startsWith("true", this.at)) {
      this.at += 4;
      return true;
    }
    if (this.text.startsWith("false", this.at)) {
      this.at += 5;
      return false;
    }
    return undefined;
  }

  /** A list of so many messages. An empty one is for the strict decoder. */
  readList<Message>(read: (json: JsonReader) => Message | undefined, min: number, max: number): Message[] | undefined {
    if (!this.takeAfterSpace("[")) return undefined;
    const items: Message[] = [];
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
    return this.at === this.text.length;
  }

  private readName(): string {
    const name = this.readString();
    return name !== undefined && this.takeAfterSpace(":") ? name : notAName;
  }

  private readString(): string | undefined {
    if (!this.takeAfterSpace('"')) return undefined;
    const { text, at: start } = this;
    for (let i = start; i < text.length; i++) {
      const code = text.charCodeAt(i);
      if (code === quote) {
        this.at = i + 1;
        return text.slice(start, i);
      }
      if (code < firstPrintable || code >= asciiEnd || code === backslash) return undefined;
    }
    return undefined;
  }

  private takeAfterSpace(character: string): boolean {
    this.skipSpace();
    if (this.text.charCodeAt(this.at) !== character.charCodeAt(0)) return false;
    this.at++;
    return true;
  }

  private skipSpace(): void {
    for (;;) {
      const code = this.text.charCodeAt(this.at);
      if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return;
      this.at++;
    }
  }
}

/** No field has this name, so that the caller finds no field for it. */
const notAName = "";
