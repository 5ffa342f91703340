const asciiEnd = 0x80;
const frameHeadLength = 5;

/** The most bytes that a text can take, tag and length included. */
export function textSize(value: string): number {
  return isShortAscii(value) ? 2 + value.length : 6 + 3 * value.length;
}

/** The most bytes that a list of messages can take, each with `headSize` bytes of tag and length. */
export function listSize<Message>(
  items: readonly Message[] | undefined,
  headSize: number,
  sizeOf: (item: Message) => number,
): number {
  let size = 0;
  if (items !== undefined) for (const item of items) size += headSize + sizeOf(item);
  return size;
}

/** True for most texts. */
function isShortAscii(value: string): boolean {
  if (value.length >= 128) return false;
  for (let i = 0; i < value.length; i++) if (value.charCodeAt(i) >= asciiEnd) return false;
  return true;
}

/**
 * Writes one message into a gRPC frame.
 *
 * The fields are public: every response creates a writer, and private fields would double its cost.
 */
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

  writeBool(tag: number, value: boolean): void {
    this.bytes[this.at++] = tag;
    this.bytes[this.at++] = value ? 1 : 0;
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

  writeUint32(tag: number, value: number): void {
    this.bytes[this.at++] = tag;
    this.writeVarint(value);
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

  /** Begins a nested message, whose fields are written next. Returns where they start, for `endMessage`. */
  beginMessage(tag: number): number {
    this.bytes[this.at++] = tag;
    // Mostly its length is one byte.
    return ++this.at;
  }

  endMessage(start: number): void {
    const length = this.at - start;
    if (length < 0x80) {
      this.bytes[start - 1] = length;
      return;
    }
    this.at = start - 1;
    this.bytes.copyWithin(this.at + varintSize(length), start, start + length);
    this.writeVarint(length);
    this.at += length;
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

function varintSize(value: number): number {
  let size = 1;
  for (let rest = value; rest >= 0x80; rest >>>= 7) size++;
  return size;
}

export const noBytes = new Uint8Array(0);

export function isEmptyObject(value: object): boolean {
  for (const _ in value) return false;
  return true;
}
