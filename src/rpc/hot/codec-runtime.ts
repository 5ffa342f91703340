import type { DescMessage, DescMethodUnary, MessageInitShape, MessageShape } from "@bufbuild/protobuf";

/* What generated codecs are made of. */

/**
 * A method with codecs of its own. They read only what they understand to the last byte, and answer undefined for the
 * rest: whether that is a good request or a bad one, and what is wrong with it, the reference path says. What they read
 * keeps the rules of its proto file. They print what the reference prints, byte for byte.
 */
export interface HotMethod {
  /** Where the gateway serves the method. */
  readonly path: string;
  readonly method: DescMethodUnary;
  decodeJson(body: Buffer): MessageShape<DescMessage> | undefined;
  /** Reads the protobuf message that begins at `start` and ends with the bytes. */
  decodeBinary(bytes: Buffer, start: number): MessageShape<DescMessage> | undefined;
  encodeJson(message: MessageInitShape<DescMessage>): string;
  /** A gRPC frame: five bytes in front of the message. */
  encodeFrame(message: MessageInitShape<DescMessage>): Buffer;
}

const quote = 0x22;
const backslash = 0x5c;
const asciiEnd = 0x80;

/**
 * How many quotes there are in a text of ASCII without escapes; -1 for any other. In such a text every string takes two
 * of them, so that their number tells whether an object holds more than the strings that were found in it: a name
 * twice, of which parsing keeps one, or a name that nobody asked for.
 */
export function countQuotes(bytes: Buffer): number {
  let quotes = 0;
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i] as number;
    if (byte === quote) quotes++;
    else if (byte >= asciiEnd || byte === backslash) return -1;
  }
  return quotes;
}

/** Undefined for anything but an object. Only for bytes whose quotes have been counted. */
export function parseObject(bytes: Buffer): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(bytes.toString("latin1"));
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : undefined;
  } catch {
    // The reference path finds out where and why.
    return undefined;
  }
}

/** The bounds are in characters, which for ASCII is the length. */
export function isText(value: unknown, min: number, max: number): value is string {
  return typeof value === "string" && value.length >= min && value.length <= max;
}

/** Reads the fields of a message whose tags are all of one byte. */
export class WireReader {
  readonly #bytes: Buffer;
  #at: number;

  constructor(bytes: Buffer, start: number) {
    this.#bytes = bytes;
    this.#at = start;
  }

  get atEnd(): boolean {
    return this.#at >= this.#bytes.length;
  }

  /** A longer tag begins with a byte that is none of those of one byte. */
  readTag(): number {
    return this.#bytes[this.#at++] as number;
  }

  /** Undefined for what is too short or too long, cut off, not ASCII, or holds a NUL. */
  readText(min: number, max: number): string | undefined {
    const bytes = this.#bytes;
    const length = this.#readLength();
    const start = this.#at;
    const end = start + length;
    if (!(length >= min && length <= max && end <= bytes.length)) return undefined;
    for (let i = start; i < end; i++) {
      const byte = bytes[i] as number;
      if (byte === 0 || byte >= asciiEnd) return undefined;
    }
    this.#at = end;
    return bytes.toString("latin1", start, end);
  }

  /** NaN for a length of more than three bytes, which is more than any body has, and where the bytes end. */
  #readLength(): number {
    let length = 0;
    for (let shift = 0; shift < 21; shift += 7) {
      const byte = this.#bytes[this.#at++] ?? Number.NaN;
      length |= (byte & 0x7f) << shift;
      if (byte < 0x80) return length;
    }
    return Number.NaN;
  }
}

/** Bytes that a text takes at most, tag and length included. */
export function textSize(value: string): number {
  return 6 + 3 * value.length;
}

const frameHeadLength = 5;

/** Writes one message into a gRPC frame. */
export class FrameWriter {
  readonly #bytes: Buffer;
  #at = frameHeadLength;

  /** The message takes at most `sizeMax` bytes. */
  constructor(sizeMax: number) {
    this.#bytes = Buffer.allocUnsafe(frameHeadLength + sizeMax);
  }

  finish(): Buffer {
    this.#bytes[0] = 0;
    this.#bytes.writeUInt32BE(this.#at - frameHeadLength, 1);
    return this.#bytes.subarray(0, this.#at);
  }

  writeTrue(tag: number): void {
    this.#bytes[this.#at++] = tag;
    this.#bytes[this.#at++] = 1;
  }

  writeInt32(tag: number, value: number): void {
    this.#bytes[this.#at++] = tag;
    if (value >= 0) {
      this.#writeVarint(value);
      return;
    }
    // A negative number has the ten bytes of the 64-bit number that it also is.
    let rest = value;
    for (let i = 0; i < 9; i++, rest >>= 7) this.#bytes[this.#at++] = (rest & 0x7f) | 0x80;
    this.#bytes[this.#at++] = 1;
  }

  writeDouble(tag: number, value: number): void {
    this.#bytes[this.#at++] = tag;
    this.#at = this.#bytes.writeDoubleLE(value, this.#at);
  }

  writeText(tag: number, value: string): void {
    if (this.#writeShortAscii(tag, value)) return;
    this.#bytes[this.#at++] = tag;
    this.#writeVarint(Buffer.byteLength(value));
    this.#at += this.#bytes.write(value, this.#at);
  }

  /** Bytes that are whole fields already. */
  writeFields(bytes: Uint8Array): void {
    this.#bytes.set(bytes, this.#at);
    this.#at += bytes.length;
  }

  /** A message inside; it takes less than 128 bytes, so that one holds its length. */
  writeMessage(tag: number, write: (wire: FrameWriter) => void): void {
    this.#bytes[this.#at++] = tag;
    const lengthAt = this.#at++;
    write(this);
    this.#bytes[lengthAt] = this.#at - lengthAt - 1;
  }

  /** Most texts are: it saves two calls out of JavaScript. */
  #writeShortAscii(tag: number, value: string): boolean {
    if (value.length >= 128) return false;
    const start = this.#at + 2;
    for (let i = 0; i < value.length; i++) {
      const unit = value.charCodeAt(i);
      if (unit >= asciiEnd) return false;
      this.#bytes[start + i] = unit;
    }
    this.#bytes[this.#at] = tag;
    this.#bytes[this.#at + 1] = value.length;
    this.#at = start + value.length;
    return true;
  }

  #writeVarint(value: number): void {
    let rest = value;
    for (; rest >= 0x80; rest >>>= 7) this.#bytes[this.#at++] = (rest & 0x7f) | 0x80;
    this.#bytes[this.#at++] = rest;
  }
}

/** As ProtoJSON prints them: what JSON has no number for is a string. */
export function printDouble(value: number): string {
  return Number.isFinite(value) ? `${value}` : `"${value}"`;
}

export function isEmptyObject(value: object): boolean {
  for (const _ in value) return false;
  return true;
}
