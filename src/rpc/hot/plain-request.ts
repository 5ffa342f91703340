/*
 * Requests of HTTP/1.1 that nothing is odd about, read out of the bytes of a connection. What this reader does not know to
 * the last byte it leaves alone: Node's own parser sees the same bytes then, and decides.
 */

/** Heads are smaller, but for those of strange clients. */
const headBytesMax = 8192;

/** Finds whole requests `POST <path>` with a JSON body whose length was said, on connections that stay open. */
export class PlainRequestReader<Target> {
  readonly #lines: readonly { readonly bytes: Uint8Array; readonly target: Target }[];
  /** Where the body of the request lies that was read last. */
  bodyStart = 0;
  end = 0;

  constructor(targets: ReadonlyMap<string, Target>) {
    this.#lines = Array.from(targets, ([path, target]) => {
      return { bytes: Buffer.from(`POST ${path} HTTP/1.1\r\n`), target };
    });
  }

  /** What the request that begins at `start` is for; undefined when it is odd, or not all there. */
  read(bytes: Uint8Array, start: number): Target | undefined {
    for (const line of this.#lines) {
      if (beginsWith(bytes, start, line.bytes)) {
        return this.#readHeaders(bytes, start + line.bytes.length) ? line.target : undefined;
      }
    }
    return undefined;
  }

  #readHeaders(bytes: Uint8Array, start: number): boolean {
    let seen = 0;
    let length = 0;
    let at = start;
    while (bytes[at] !== carriageReturn) {
      const name = at;
      while (isNameByte[bytes[at] as number]) at++;
      const colon = at;
      if (colon === name || bytes[at++] !== 0x3a) return false;
      while (bytes[at] === space) at++;
      const value = at;
      while (isValueByte[bytes[at] as number]) at++;
      if (bytes[at] !== carriageReturn || bytes[at + 1] !== lineFeed) return false;

      const header = knownHeader(bytes, name, colon);
      if (header !== undefined) {
        // Twice the same is for others to judge.
        if ((seen & header.bit) !== 0 || !header.isPlain(bytes, value, at)) return false;
        seen |= header.bit;
        if (header === contentLength) length = readDigits(bytes, value, at);
      }
      at += 2;
    }
    this.bodyStart = at + 2;
    this.end = this.bodyStart + length;
    const isWhole = bytes[at + 1] === lineFeed && this.end <= bytes.length;
    return isWhole && (seen & required) === required && at - start <= headBytesMax;
  }
}

type IsPlain = (bytes: Uint8Array, start: number, end: number) => boolean;

interface KnownHeader {
  readonly name: Uint8Array;
  readonly bit: number;
  /** Whether the value is one that asks for nothing out of the ordinary. */
  readonly isPlain: IsPlain;
}

const never: IsPlain = () => false;

/** The headers that change what a request means; whatever else a client tells is not for us. */
const headers = (
  [
    ["host", (bytes, start, end) => end > start && all(bytes, start, end, isHostByte)],
    ["content-type", (bytes, start, end) => isText(bytes, start, end, json)],
    ["content-length", (bytes, start, end) => isLength(bytes, start, end)],
    ["connection", (bytes, start, end) => isText(bytes, start, end, keepAlive)],
    ["content-encoding", never],
    ["transfer-encoding", never],
    ["expect", never],
    ["upgrade", never],
    ["trailer", never],
  ] as const satisfies readonly (readonly [string, IsPlain])[]
).map(([name, isPlain], index): KnownHeader => ({ name: Buffer.from(name), bit: 1 << index, isPlain }));
const [, , contentLength] = headers;
/** The first three. */
const required = 0b111;

/** Most headers are told apart by their length alone. */
const headersByLength = Array.from({ length: 32 }, (_, length) => headers.filter(({ name }) => name.length === length));

function knownHeader(bytes: Uint8Array, start: number, end: number): KnownHeader | undefined {
  const length = end - start;
  if (length >= headersByLength.length) return undefined;
  for (const header of headersByLength[length] as readonly KnownHeader[]) {
    if (isText(bytes, start, end, header.name)) return header;
  }
  return undefined;
}

const carriageReturn = 0x0d;
const lineFeed = 0x0a;
const space = 0x20;
const json = Buffer.from("application/json");
const keepAlive = Buffer.from("keep-alive");
const isNameByte = tableOf(/[!#$%&'*+\-.^_`|~0-9A-Za-z]/);
const isValueByte = tableOf(/[\t\x20-\x7e]/);
const isHostByte = tableOf(/[0-9A-Za-z.:_-]/);
const lowerCase = Uint8Array.from({ length: 256 }, (_, byte) => String.fromCharCode(byte).toLowerCase().charCodeAt(0));

function tableOf(pattern: RegExp): Uint8Array {
  return Uint8Array.from({ length: 256 }, (_, byte) => (pattern.test(String.fromCharCode(byte)) ? 1 : 0));
}

function beginsWith(bytes: Uint8Array, start: number, text: Uint8Array): boolean {
  for (let i = 0; i < text.length; i++) if (bytes[start + i] !== text[i]) return false;
  return true;
}

/** Whether it is the text, which is in lower case, in whatever case. */
function isText(bytes: Uint8Array, start: number, end: number, text: Uint8Array): boolean {
  if (end - start !== text.length) return false;
  for (let i = 0; i < text.length; i++) if (lowerCase[bytes[start + i] as number] !== text[i]) return false;
  return true;
}

function all(bytes: Uint8Array, start: number, end: number, table: Uint8Array): boolean {
  for (let i = start; i < end; i++) if (!table[bytes[i] as number]) return false;
  return true;
}

/** Digits without a zero in front, five at most: no body that may be longer is ours. */
function isLength(bytes: Uint8Array, start: number, end: number): boolean {
  if (end === start || end - start > 5 || bytes[start] === 0x30) return false;
  for (let i = start; i < end; i++) if (!isDigit(bytes[i] as number)) return false;
  return true;
}

function isDigit(byte: number): boolean {
  return byte >= 0x30 && byte <= 0x39;
}

function readDigits(bytes: Uint8Array, start: number, end: number): number {
  let value = 0;
  for (let i = start; i < end; i++) value = value * 10 + (bytes[i] as number) - 0x30;
  return value;
}
