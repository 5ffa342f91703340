/*
 * Requests of HTTP/1.1, read out of the bytes of a connection. This reader knows a strict part of HTTP. It repairs nothing
 * and tolerates nothing: where it is not sure what a byte means, Node's own parser gets the bytes and decides.
 */

/** Longer heads are for Node. */
const headBytesMax = 8192;

/** What the bytes at some place are. */
export type ReadResult =
  /** A whole request for one of the targets, without a header that changes how it must be answered. */
  | "supported"
  /** The whole head of a request that is not supported. `end` is where we think it ends: true only if Node's parser agrees. */
  | "other"
  /** The beginning of a request that may be supported, or of any head. */
  | "incomplete"
  /** Bytes whose meaning, or whose end, is for Node to say. */
  | "unknown";

/** Finds whole requests. Targets are asked for with `POST <path>` and a JSON body whose length is given. */
export class RequestReader<Target> {
  readonly #lines: readonly { readonly bytes: Uint8Array; readonly target: Target }[];
  readonly #bodyBytesMax: number;
  /** Of the request that was read last, if its line is one of ours. */
  target: Target | undefined;
  /** Where its body lies. */
  bodyStart = 0;
  end = 0;
  /** Whether the head of an incomplete request is there. `end` is known then. */
  hasHead = false;
  #firstHeader = 0;

  constructor(targets: ReadonlyMap<string, Target>, bodyBytesMax: number) {
    this.#bodyBytesMax = bodyBytesMax;
    this.#lines = Array.from(targets, ([path, target]) => {
      return { bytes: Buffer.from(`POST ${path} HTTP/1.1\r\n`), target };
    });
  }

  /** The headers of the supported request that was read last which calls may ask for. Each is there once at most. */
  callHeaders(bytes: Buffer): Record<string, string | undefined> {
    const lines = bytes.toString("latin1", this.#firstHeader - 2, this.bodyStart);
    return {
      authorization: /\r\nauthorization: *([^\r]+)/i.exec(lines)?.[1],
      "idempotency-key": /\r\nidempotency-key: *([^\r]+)/i.exec(lines)?.[1],
    };
  }

  /** Its trace context, if it has one. Headers that are there twice are joined, as Node does it. */
  traceHeaders(bytes: Buffer): Record<"traceparent" | "tracestate", string> | undefined {
    const lines = bytes.toString("latin1", this.#firstHeader - 2, this.bodyStart);
    if (!/\r\ntraceparent:/i.test(lines)) return undefined;
    const valuesOf = (pattern: RegExp) => Array.from(lines.matchAll(pattern), ([, value]) => value).join(", ");
    return {
      traceparent: valuesOf(/\r\ntraceparent: *([^\r]*)/gi),
      tracestate: valuesOf(/\r\ntracestate: *([^\r]*)/gi),
    };
  }

  /** Looks at the request that begins at `start`. */
  read(bytes: Uint8Array, start: number): ReadResult {
    this.target = undefined;
    this.hasHead = false;
    for (const line of this.#lines) {
      if (beginsWith(bytes, start, line.bytes)) {
        this.target = line.target;
        return this.#readHeaders(bytes, start, start + line.bytes.length);
      }
    }
    return this.#readOther(bytes, start);
  }

  #readOther(bytes: Uint8Array, start: number): ReadResult {
    const line = otherPrefixes.find((candidate) => beginsWith(bytes, start, candidate));
    if (line === undefined) {
      const isBegun = otherPrefixes.some((candidate) => beginsWith(candidate, 0, bytes.subarray(start)));
      return isBegun ? "incomplete" : "unknown";
    }
    let at = start + line.length;
    while (isVisible[bytes[at] as number]) at++;
    for (const byte of version) {
      if (at === bytes.length) return incomplete(at - start);
      if (bytes[at++] !== byte) return "unknown";
    }
    return this.#readHeaders(bytes, start, at);
  }

  #readHeaders(bytes: Uint8Array, start: number, firstHeader: number): ReadResult {
    let isSupported = this.target !== undefined;
    let seen = 0;
    let length = 0;
    let at = firstHeader;
    this.#firstHeader = firstHeader;
    while (bytes[at] !== carriageReturn) {
      const name = at;
      while (isNameByte[bytes[at] as number]) at++;
      const colon = at;
      if (at === bytes.length) return incomplete(at - start);
      if (colon === name || bytes[at++] !== 0x3a) return "unknown";
      while (bytes[at] === space) at++;
      const value = at;
      while (isValueByte[bytes[at] as number]) at++;
      if (at === bytes.length) return incomplete(at - start);
      if (bytes[at] !== carriageReturn) return "unknown";
      if (at + 1 === bytes.length) return incomplete(at - start);
      if (bytes[at + 1] !== lineFeed) return "unknown";

      const header = knownHeader(bytes, name, colon);
      if (header !== undefined) {
        const isRepeated = (seen & header.bit) !== 0;
        seen |= header.bit;
        // Node decides about headers that change where a request ends or what follows it, and about a repeated length.
        if (header.movesEnd || (isRepeated && header === contentLength)) return "unknown";
        if (header === contentLength) {
          if (!isLength(bytes, value, at)) return "unknown";
          length = readDigits(bytes, value, at);
          if (length > this.#bodyBytesMax) return "unknown";
        }
        if (isRepeated || !header.isSupported(bytes, value, at)) isSupported = false;
      }
      at += 2;
      if (at - start > headBytesMax) return "unknown";
    }
    if (at + 1 === bytes.length) return incomplete(at - start);
    if (bytes[at + 1] !== lineFeed) return "unknown";
    this.hasHead = true;
    this.bodyStart = at + 2;
    this.end = this.bodyStart + length;
    if (!isSupported || (seen & requiredBits) !== requiredBits) return "other";
    return this.end > bytes.length ? "incomplete" : "supported";
  }
}

/** The head is not whole. If it is longer than `headBytesMax` already, Node gets it and decides. */
function incomplete(headBytes: number): ReadResult {
  return headBytes > headBytesMax ? "unknown" : "incomplete";
}

type IsSupported = (bytes: Uint8Array, start: number, end: number) => boolean;

interface KnownHeader {
  readonly name: Uint8Array;
  readonly bit: number;
  /** Whether a request with this value is answered as if the header were not there. */
  readonly isSupported: IsSupported;
  /** Whether it decides where the request ends, or what follows it. */
  readonly movesEnd: boolean;
}

const never: IsSupported = () => false;
/** Whether no space is around the value: how much of it belongs to the value is for Node to say. */
const isTrimmed: IsSupported = (bytes, start, end) =>
  end > start && isVisible[bytes[start] as number] === 1 && isVisible[bytes[end - 1] as number] === 1;

/** The headers that change what a request means. All others are passed over. */
const headers = (
  [
    ["host", (bytes, start, end) => end > start && all(bytes, start, end, isHostByte)],
    ["content-type", (bytes, start, end) => equalsIgnoreCase(bytes, start, end, json)],
    ["content-length", () => true],
    ["connection", (bytes, start, end) => equalsIgnoreCase(bytes, start, end, keepAlive)],
    ["content-encoding", never],
    // Node's parser takes it for Connection.
    ["proxy-connection", never],
    ["trailer", never],
    ["transfer-encoding", never, "moves the end"],
    // We never upgrade: the request ends as usual. But Node drops bytes that it is given together with such a request.
    ["upgrade", never],
    ["expect", never, "moves the end"],
    // Where its answers may be read by pages of this origin, Node's path says so: see `cors.ts`.
    ["origin", never],
    // Calls may ask for these two: see `callHeaders`.
    ["authorization", isTrimmed],
    ["idempotency-key", isTrimmed],
  ] as const satisfies readonly (readonly [string, IsSupported, string?])[]
).map(([name, isSupported, movesEnd], index): KnownHeader => {
  return { name: Buffer.from(name), bit: 1 << index, isSupported, movesEnd: movesEnd !== undefined };
});
const [, , contentLength] = headers;
/** The first three. */
const requiredBits = 0b111;

/** Most headers are told apart by their length alone. */
const headersByLength = Array.from({ length: 32 }, (_, length) => headers.filter(({ name }) => name.length === length));

function knownHeader(bytes: Uint8Array, start: number, end: number): KnownHeader | undefined {
  const length = end - start;
  if (length >= headersByLength.length) return undefined;
  for (const header of headersByLength[length] as readonly KnownHeader[]) {
    if (equalsIgnoreCase(bytes, start, end, header.name)) return header;
  }
  return undefined;
}

const carriageReturn = 0x0d;
const lineFeed = 0x0a;
const space = 0x20;
const json = Buffer.from("application/json");
/** How requests for other paths begin. Node gets everything else: CONNECT, absolute URLs, unknown methods. */
const otherPrefixes = ["GET /", "HEAD /", "POST /", "PUT /", "PATCH /", "DELETE /", "OPTIONS /"].map((line) =>
  Buffer.from(line),
);
const version = Buffer.from(" HTTP/1.1\r\n");
const keepAlive = Buffer.from("keep-alive");
const isNameByte = tableOf(/[!#$%&'*+\-.^_`|~0-9A-Za-z]/);
const isValueByte = tableOf(/[\t\x20-\x7e]/);
const isVisible = tableOf(/[\x21-\x7e]/);
const isHostByte = tableOf(/[0-9A-Za-z.:_-]/);
const lowerCase = Uint8Array.from({ length: 256 }, (_, byte) => String.fromCharCode(byte).toLowerCase().charCodeAt(0));

function tableOf(pattern: RegExp): Uint8Array {
  return Uint8Array.from({ length: 256 }, (_, byte) => (pattern.test(String.fromCharCode(byte)) ? 1 : 0));
}

function beginsWith(bytes: Uint8Array, start: number, text: Uint8Array): boolean {
  for (let i = 0; i < text.length; i++) if (bytes[start + i] !== text[i]) return false;
  return true;
}

/** Compares without regard to case. `text` must be in lower case. */
function equalsIgnoreCase(bytes: Uint8Array, start: number, end: number, text: Uint8Array): boolean {
  if (end - start !== text.length) return false;
  for (let i = 0; i < text.length; i++) if (lowerCase[bytes[start + i] as number] !== text[i]) return false;
  return true;
}

function all(bytes: Uint8Array, start: number, end: number, table: Uint8Array): boolean {
  for (let i = start; i < end; i++) if (!table[bytes[i] as number]) return false;
  return true;
}

/** Five digits at most, without a zero in front. */
function isLength(bytes: Uint8Array, start: number, end: number): boolean {
  if (end === start || end - start > 5 || (bytes[start] === 0x30 && end - start > 1)) return false;
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
