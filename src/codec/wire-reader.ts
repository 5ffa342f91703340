const asciiEnd = 0x80;

/**
 * Reads the fields of a message. All tags must have one byte. Its methods return undefined for what they do not
 * understand or what reaches beyond the message, and then the bytes must be left to the strict decoder.
 *
 * The fields are public: every request creates a reader, and private fields would double its cost.
 */
export class WireReader {
  readonly bytes: Buffer;
  at: number;
  /** Where the message ends that is being read. */
  end: number;

  constructor(bytes: Buffer, start: number) {
    this.bytes = bytes;
    this.at = start;
    this.end = bytes.length;
  }

  get atEnd(): boolean {
    return this.at >= this.end;
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
    if (!(length >= min && length <= max && end <= this.end)) return undefined;
    for (let i = start; i < end; i++) {
      const byte = bytes[i] as number;
      if (byte === 0 || byte >= asciiEnd) return undefined;
    }
    this.at = end;
    return bytes.toString("latin1", start, end);
  }

  /** A number of at most 32 bits. Longer ones, negative ones among them, are for the strict decoder. */
  readWhole(min: number, max: number): number | undefined {
    const value = this.readVarint();
    return value >= min && value <= max && this.at <= this.end ? value : undefined;
  }

  readBool(): boolean | undefined {
    if (this.atEnd) return undefined;
    const byte = this.bytes[this.at++];
    return byte === 1 ? true : byte === 0 ? false : undefined;
  }

  readMessage<Message>(read: (wire: WireReader) => Message | undefined): Message | undefined {
    const length = this.readLength();
    const outerEnd = this.end;
    const end = this.at + length;
    if (!(end <= outerEnd)) return undefined;
    this.end = end;
    const message = read(this);
    this.end = outerEnd;
    return message;
  }

  /** A list with one more message, or undefined if it is then too long. */
  readItem<Message>(
    read: (wire: WireReader) => Message | undefined,
    items: Message[] | undefined,
    max: number,
  ): Message[] | undefined {
    const item = this.readMessage(read);
    if (item === undefined || (items?.length ?? 0) >= max) return undefined;
    if (items === undefined) return [item];
    items.push(item);
    return items;
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

  /** NaN if the bytes end, or if the number has more than 32 bits. */
  private readVarint(): number {
    let value = 0;
    for (let weight = 1; weight <= 2 ** 28; weight *= 0x80) {
      const byte = this.bytes[this.at++] ?? Number.NaN;
      value += (byte & 0x7f) * weight;
      if (byte < 0x80) return value < 2 ** 32 ? value : Number.NaN;
    }
    return Number.NaN;
  }
}
