import type { DescMessage, DescMethodUnary, MessageInitShape, MessageShape } from "@bufbuild/protobuf";

/* The parts of generated codecs. `gen` imports this file, so it imports nothing of ours. */

/**
 * A method with generated codecs. They read only messages that they understand completely and that obey the rules of
 * the proto file. For all others they return undefined, and the strict decoder reads them or says what is wrong. They
 * print the same bytes as the reference.
 */
export interface HotMethod {
  /** The method's path on the gateway. */
  readonly path: string;
  readonly method: DescMethodUnary;
  /** Reads the JSON between `start` and `end`. */
  decodeJson(bytes: Buffer, start: number, end: number): MessageShape<DescMessage> | undefined;
  /** Reads the protobuf message that begins at `start` and ends with the bytes. */
  decodeBinary(bytes: Buffer, start: number): MessageShape<DescMessage> | undefined;
  encodeJson(message: MessageInitShape<DescMessage>): string;
  /** A gRPC frame: five bytes in front of the message. */
  encodeFrame(message: MessageInitShape<DescMessage>): Buffer;
}

const quote = 0x22;
const backslash = 0x5c;
const firstPrintable = 0x20;
const asciiEnd = 0x80;

/*
 * The fields of these readers and writers are public: every request creates one, and private fields would double its
 * cost.
 */

/** Reads an object whose members are all ASCII strings without escapes. Stops at anything else. */
export class FlatJsonReader {
  readonly text: string;
  at = 0;
  isWhole = false;

  constructor(bytes: Buffer, start: number, end: number) {
    this.text = bytes.toString("latin1", start, end);
  }

  /** The name of the first member. Undefined if there is none, or if the bytes are something else. */
  readFirstName(): string | undefined {
    if (!this.takeAfterSpace("{")) return undefined;
    if (!this.takeAfterSpace("}")) return this.readString();
    this.isWhole = this.isAtEnd();
    return undefined;
  }

  /** The name of the next member. Undefined at the end: `isWhole` then tells whether it was the end of an object. */
  readNextName(): string | undefined {
    if (this.takeAfterSpace(",")) return this.readString();
    this.isWhole = this.takeAfterSpace("}") && this.isAtEnd();
    return undefined;
  }

  /** The string of the member. Undefined if it is too short or too long, or not a string. */
  readText(min: number, max: number): string | undefined {
    if (!this.takeAfterSpace(":")) return undefined;
    const value = this.readString();
    // The bounds are in characters, which for ASCII is the length.
    return value !== undefined && value.length >= min && value.length <= max ? value : undefined;
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

  private isAtEnd(): boolean {
    this.skipSpace();
    return this.at === this.text.length;
  }

  private skipSpace(): void {
    for (;;) {
      const code = this.text.charCodeAt(this.at);
      if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return;
      this.at++;
    }
  }
}

/** Reads the fields of a message. All tags must have one byte. */
export class WireReader {
  readonly bytes: Buffer;
  at: number;

  constructor(bytes: Buffer, start: number) {
    this.bytes = bytes;
    this.at = start;
  }

  get atEnd(): boolean {
    return this.at >= this.bytes.length;
  }

  /** The first byte of a longer tag differs from every tag of one byte. */
  readTag(): number {
    return this.bytes[this.at++] as number;
  }

  /** Undefined for a text that is too short, too long, cut off or not ASCII, or that contains NUL. */
  readText(min: number, max: number): string | undefined {
    const bytes = this.bytes;
    const length = this.readLength();
    const start = this.at;
    const end = start + length;
    if (!(length >= min && length <= max && end <= bytes.length)) return undefined;
    for (let i = start; i < end; i++) {
      const byte = bytes[i] as number;
      if (byte === 0 || byte >= asciiEnd) return undefined;
    }
    this.at = end;
    return bytes.toString("latin1", start, end);
  }

  /** NaN if the bytes end, or if the length has more than three bytes: no body is that long. */
  private readLength(): number {
    let length = 0;
    for (let shift = 0; shift < 21; shift += 7) {
      const byte = this.bytes[this.at++] ?? Number.NaN;
      length |= (byte & 0x7f) << shift;
      if (byte < 0x80) return length;
    }
    return Number.NaN;
  }
}

/** The most bytes that a text can take, tag and length included. */
export function textSize(value: string): number {
  return isShortAscii(value) ? 2 + value.length : 6 + 3 * value.length;
}

/** True for most texts. */
function isShortAscii(value: string): boolean {
  if (value.length >= 128) return false;
  for (let i = 0; i < value.length; i++) if (value.charCodeAt(i) >= asciiEnd) return false;
  return true;
}

const frameHeadLength = 5;

/** Writes one message into a gRPC frame. */
export class FrameWriter {
  readonly bytes: Buffer;
  at = frameHeadLength;

  /** The message takes at most `sizeMax` bytes. */
  constructor(sizeMax: number) {
    this.bytes = Buffer.allocUnsafe(frameHeadLength + sizeMax);
  }

  finish(): Buffer {
    this.bytes[0] = 0;
    this.bytes.writeUInt32BE(this.at - frameHeadLength, 1);
    return this.bytes.subarray(0, this.at);
  }

  writeTrue(tag: number): void {
    this.bytes[this.at++] = tag;
    this.bytes[this.at++] = 1;
  }

  writeInt32(tag: number, value: number): void {
    this.bytes[this.at++] = tag;
    if (value >= 0) {
      this.writeVarint(value);
      return;
    }
    // A negative number is sent as a 64-bit number, in ten bytes.
    let rest = value;
    for (let i = 0; i < 9; i++, rest >>= 7) this.bytes[this.at++] = (rest & 0x7f) | 0x80;
    this.bytes[this.at++] = 1;
  }

  writeDouble(tag: number, value: number): void {
    this.bytes[this.at++] = tag;
    this.at = this.bytes.writeDoubleLE(value, this.at);
  }

  writeText(tag: number, value: string): void {
    if (isShortAscii(value)) {
      this.writeShortAscii(tag, value);
      return;
    }
    this.bytes[this.at++] = tag;
    this.writeVarint(Buffer.byteLength(value));
    this.at += this.bytes.write(value, this.at);
  }

  /** Writes fields that are already encoded; mostly no bytes, or two. */
  writeFields(fields: Uint8Array): void {
    if (fields.length > 16) this.bytes.set(fields, this.at);
    else for (let i = 0; i < fields.length; i++) this.bytes[this.at + i] = fields[i] as number;
    this.at += fields.length;
  }

  /** Writes a nested message. It must be shorter than 128 bytes: its length is one byte. */
  writeMessage(tag: number, write: (wire: FrameWriter) => void): void {
    this.bytes[this.at++] = tag;
    const lengthAt = this.at++;
    write(this);
    this.bytes[lengthAt] = this.at - lengthAt - 1;
  }

  /** Saves two calls out of JavaScript. */
  private writeShortAscii(tag: number, value: string): void {
    const { bytes, at } = this;
    const { length } = value;
    bytes[at] = tag;
    bytes[at + 1] = length;
    for (let i = 0; i < length; i++) bytes[at + 2 + i] = value.charCodeAt(i);
    this.at = at + 2 + length;
  }

  private writeVarint(value: number): void {
    let rest = value;
    for (; rest >= 0x80; rest >>>= 7) this.bytes[this.at++] = (rest & 0x7f) | 0x80;
    this.bytes[this.at++] = rest;
  }
}

/** Prints like `JSON.stringify`, but faster for a text without escapes. */
export function printText(value: string): string {
  if (value.length > 64) return JSON.stringify(value);
  for (let i = 0; i < value.length; i++) {
    const code = value.charCodeAt(i);
    if (code < firstPrintable || code >= asciiEnd || code === quote || code === backslash) return JSON.stringify(value);
  }
  return `"${value}"`;
}

/** Prints free JSON, which is mostly empty. */
export function printStruct(value: object): string {
  return isEmptyObject(value) ? "{}" : JSON.stringify(value);
}

/** Prints like ProtoJSON: NaN and Infinity, which JSON does not have, become strings. */
export function printDouble(value: number): string {
  return Number.isFinite(value) ? `${value}` : `"${value}"`;
}

export const noBytes = new Uint8Array(0);

export function isEmptyObject(value: object): boolean {
  for (const _ in value) return false;
  return true;
}
