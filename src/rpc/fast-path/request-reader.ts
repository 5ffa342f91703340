import { METHODS } from "node:http";
import type { Http1ReadBy } from "../../ambient/metrics.ts";
import type { CallHeaders } from "../call.ts";
import { mediaTypeOf } from "../http-handler.ts";

/*
 * Requests of HTTP/1.1, read out of the bytes of a connection. This reader knows a strict part of HTTP. It repairs nothing
 * and tolerates nothing: where it is not sure what a byte means, Node's own parser gets the connection.
 */

/** Longer heads are for Node. */
const headBytesMax = 8192;

/** What the bytes at some place are. */
export type ReadResult =
  /** A whole request for one of the targets, without a header that changes how it must be answered. */
  | "supported"
  /** The beginning of a request that may be supported. */
  | "incomplete"
  /** Why Node gets these bytes and all that follow: the path, a header, the body, or a doubt about what the bytes mean. */
  | Exclude<Http1ReadBy, "by_hand" | "node_only">;

/** What answers a request. */
export interface ReaderTarget {
  /** Whether it reads a body in JSON, and waits for it. Others answer by the head alone; a whole body is passed over. */
  readonly readsJson: boolean;
}

export interface ReaderOptions<Kind extends ReaderTarget> {
  /** Paths that are compared first, of `POST` requests with a body in JSON. */
  readonly hot: ReadonlyMap<string, Kind>;
  /** What answers another request. Undefined: Node does. `url` is as Node has it. */
  readonly find: (method: string, url: string) => Kind | undefined;
  /** Whether requests in JSON that name their origin are answered as all others. */
  readonly ignoresOrigin: boolean;
  readonly bodyBytesMax: number;
}

/** Finds whole requests. */
export class RequestReader<Kind extends ReaderTarget> {
  readonly #hotLines: readonly { readonly bytes: Uint8Array; readonly target: Kind }[];
  readonly #options: ReaderOptions<Kind>;
  /* These describe the request that was read last. */
  target: Kind | undefined;
  /** Empty if the target is hot. */
  method = "";
  url = "";
  /** Whether the client closes the connection after it. */
  isLast = false;
  /** Where its body lies. */
  bodyStart = 0;
  end = 0;
  /** Whether the head of an incomplete request is there. `end` is known then. */
  hasHead = false;
  #firstHeader = 0;

  constructor(options: ReaderOptions<Kind>) {
    this.#options = options;
    this.#hotLines = Array.from(options.hot, ([path, target]) => {
      return { bytes: Buffer.from(`POST ${path} HTTP/1.1\r\n`), target };
    });
  }

  /** The headers of the supported request that was read last, as Node gives them. */
  headers(bytes: Buffer): CallHeaders {
    return readHeaders(bytes.toString("latin1", this.#firstHeader, this.bodyStart - 2));
  }

  /** Looks at the request that begins at `start`. */
  read(bytes: Buffer, start: number): ReadResult {
    this.hasHead = false;
    this.method = "";
    for (const { bytes: line, target } of this.#hotLines) {
      if (beginsWith(bytes, start, line)) return this.#readHeaders(bytes, start, start + line.length, target);
    }
    return this.#readLine(bytes, start);
  }

  #readLine(bytes: Buffer, start: number): ReadResult {
    let at = start;
    while (isMethodByte[bytes[at] as number]) at++;
    if (at === bytes.length) return at - start > methodBytesMax ? "node_framing" : "incomplete";
    const method = bytes.toString("latin1", start, at);
    if (bytes[at++] !== space || !methods.has(method)) return "node_framing";
    const firstOfUrl = at;
    while (isVisible[bytes[at] as number]) at++;
    const endOfUrl = at;
    for (const byte of version) {
      if (at === bytes.length) return incomplete(at - start);
      if (bytes[at++] !== byte) return "node_framing";
    }
    // Absolute URLs, and the asterisk of OPTIONS.
    if (bytes[firstOfUrl] !== slash) return "node_framing";
    this.method = method;
    this.url = bytes.toString("latin1", firstOfUrl, endOfUrl);
    const target = this.#options.find(method, this.url);
    return target === undefined ? "node_path" : this.#readHeaders(bytes, start, at, target);
  }

  #readHeaders(bytes: Buffer, start: number, firstHeader: number, target: Kind): ReadResult {
    let seen = 0;
    let length = 0;
    let at = firstHeader;
    const { readsJson } = target;
    const { ignoresOrigin, bodyBytesMax } = this.#options;
    this.target = target;
    this.isLast = false;
    this.#firstHeader = firstHeader;
    while (bytes[at] !== carriageReturn) {
      const name = at;
      while (isNameByte[bytes[at] as number]) at++;
      const colon = at;
      if (at === bytes.length) return incomplete(at - start);
      if (colon === name || bytes[at++] !== 0x3a) return "node_framing";
      while (bytes[at] === space) at++;
      const value = at;
      while (isValueByte[bytes[at] as number]) at++;
      if (at === bytes.length) return incomplete(at - start);
      if (bytes[at] !== carriageReturn) return "node_framing";
      if (at + 1 === bytes.length) return incomplete(at - start);
      if (bytes[at + 1] !== lineFeed) return "node_framing";

      const header = knownHeader(bytes, name, colon);
      if (header !== undefined && (readsJson || !header.isOfJson) && !(ignoresOrigin && header === origin)) {
        const isRepeated = (seen & header.bit) !== 0;
        seen |= header.bit;
        if (header === contentLength) {
          if (isRepeated || !isLength(bytes, value, at)) return "node_framing";
          length = readDigits(bytes, value, at);
          if (length > bodyBytesMax) return "node_body";
        } else if (header === connection && equalsIgnoreCase(bytes, value, at, close)) this.isLast = true;
        else if (!header.isSupported(bytes, value, at)) return header.movesEnd ? "node_framing" : "node_head";
        if (isRepeated) return "node_head";
      }
      at += 2;
      if (at - start > headBytesMax) return "node_head";
    }
    if (at + 1 === bytes.length) return incomplete(at - start);
    if (bytes[at + 1] !== lineFeed) return "node_framing";
    const required = readsJson ? requiredOfJson : requiredBits;
    if ((seen & required) !== required) return "node_head";
    this.hasHead = true;
    this.bodyStart = at + 2;
    this.end = this.bodyStart + length;
    // A body that is not read is not waited for either. Of GET and HEAD, Node decides what it means.
    if (!readsJson && length > 0 && (this.end > bytes.length || this.method === "GET" || this.method === "HEAD"))
      return "node_body";
    return this.end > bytes.length ? "incomplete" : "supported";
  }
}

/** The head is not whole. If it is longer than `headBytesMax` already, Node gets it and decides. */
function incomplete(headBytes: number): ReadResult {
  return headBytes > headBytesMax ? "node_head" : "incomplete";
}

/** Node keeps the first of these, and joins other headers that are repeated. */
const singleHeaders: ReadonlySet<string> = new Set(
  [
    ["age", "authorization", "content-length", "content-type", "etag", "expires", "from", "host", "if-modified-since"],
    ["if-unmodified-since", "last-modified", "location", "max-forwards", "proxy-authorization", "referer"],
    ["retry-after", "server", "user-agent"],
  ].flat(),
);

/** The headers in these lines, as Node gives them. */
function readHeaders(lines: string): CallHeaders {
  const headers: Record<string, string | string[]> = Object.create(null);
  for (let at = 0; at < lines.length; ) {
    const colon = lines.indexOf(":", at);
    const end = lines.indexOf("\r", colon);
    const name = lines.slice(at, colon).toLowerCase();
    const value = lines.slice(colon + 1, end).trim();
    const before = headers[name];
    if (name === "set-cookie") headers[name] = [...(before ?? []), value];
    else if (before === undefined) headers[name] = value;
    else if (!singleHeaders.has(name)) headers[name] = `${before}${name === "cookie" ? "; " : ", "}${value}`;
    at = end + 2;
  }
  return headers;
}

type IsSupported = (bytes: Buffer, start: number, end: number) => boolean;

interface KnownHeader {
  readonly name: Uint8Array;
  readonly bit: number;
  /** Whether a request with this value is answered as if the header were not there. */
  readonly isSupported: IsSupported;
  /** Whether it decides where the request ends, or what follows it. */
  readonly movesEnd: boolean;
  /** Whether only targets that read JSON care about it. */
  readonly isOfJson: boolean;
}

const always: IsSupported = () => true;
const never: IsSupported = () => false;
const isJson: IsSupported = (bytes, start, end) =>
  equalsIgnoreCase(bytes, start, end, json) ||
  mediaTypeOf({ headers: { "content-type": bytes.toString("latin1", start, end).trim() } }) === "application/json";
const leavesOpen: IsSupported = (bytes, start, end) =>
  equalsIgnoreCase(bytes, start, end, keepAlive) || staying.test(bytes.toString("latin1", start, end));

/** The headers that change what a request means. All others are passed over, `Upgrade` too: nothing is upgraded here. */
const headers = (
  [
    ["host", always],
    ["content-type", isJson, "of JSON"],
    ["content-length", always],
    ["connection", leavesOpen],
    ["content-encoding", never, "of JSON"],
    // Node's parser takes it for Connection.
    ["proxy-connection", never],
    ["trailer", never],
    ["transfer-encoding", never, "moves the end"],
    ["expect", never, "moves the end"],
    // Where its answers may be read by pages of this origin, Node's path says so: see `cors.ts`.
    ["origin", never, "of JSON"],
  ] as const satisfies readonly (readonly [string, IsSupported, string?])[]
).map(([name, isSupported, kind], index): KnownHeader => {
  const [movesEnd, isOfJson] = [kind === "moves the end", kind === "of JSON"];
  return { name: Buffer.from(name), bit: 1 << index, isSupported, movesEnd, isOfJson };
});
const [host, contentType, contentLength, connection] = headers as [KnownHeader, KnownHeader, KnownHeader, KnownHeader];
const origin = headers.at(-1);
const requiredBits = host.bit;
const requiredOfJson = host.bit | contentType.bit | contentLength.bit;

/** Most headers are distinguished by their length alone. */
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
const slash = 0x2f;
const json = Buffer.from("application/json");
/** All that Node knows. What follows CONNECT is no HTTP. */
const methods: ReadonlySet<string> = new Set(METHODS.filter((method) => method !== "CONNECT"));
const methodBytesMax = Math.max(...METHODS.map(({ length }) => length));
const isMethodByte = tableOf(/[A-Z-]/);
const version = Buffer.from(" HTTP/1.1\r\n");
const keepAlive = Buffer.from("keep-alive");
const close = Buffer.from("close");
/** What Java's client says of the upgrade that it asks for in every request, and what else leaves the connection open. */
const staying = /^(?:keep-alive|upgrade|http2-settings|te)(?:, ?(?:keep-alive|upgrade|http2-settings|te))*$/i;
const isNameByte = tableOf(/[!#$%&'*+\-.^_`|~0-9A-Za-z]/);
const isValueByte = tableOf(/[\t\x20-\x7e]/);
const isVisible = tableOf(/[\x21-\x7e]/);
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
