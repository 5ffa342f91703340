import type { IncomingMessage } from "node:http";
import type { Readable } from "node:stream";
import { ApiError } from "./api-error.ts";

export const bodyBytesMax = 65_536;

/** A body as it came; or why there is none. */
export type ReadBody = Buffer | ApiError;

/**
 * Reads the whole body, as it came: nothing is decompressed. Throws `ApiError` once it is too large. Never settles where the
 * client goes away before: there is no one to answer, and what waits for it is freed with the request.
 */
export function readBody(req: IncomingMessage): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const takeBody = (body: ReadBody) => (body instanceof ApiError ? reject(body) : resolve(body));
    collectBody(req, req.headers["content-length"], { takeBody });
  });
}

/** What a body is collected for. */
export interface BodyTaker {
  /** Called once: with the whole body, or as soon as it is too large. Never where the client goes away before. */
  takeBody(body: ReadBody): void;
}

/** A request, or the HTTP/2 stream of one. */
interface Source extends Readable {
  /** Set where the client broke off: over HTTP/2 the source ends then as if it had been whole. */
  readonly aborted: boolean;
}

/** Reads the source to its end. */
export function collectBody(source: Source, contentLength: string | undefined, taker: BodyTaker): void {
  (source as Collected)[collection] = { taker, size: 0, bytes: nothing };
  source.on("data", onData);
  source.on("end", onEnd);
  if (contentLength !== undefined && Number(contentLength) > bodyBytesMax) refuse(source as Collected, tooLarge());
}

/*
 * What is known of a body hangs on its source, where the listeners, the same for all, find it: closures for each would stay
 * with the source to its end, and the garbage collector would have to carry them along.
 */

const collection = Symbol("collection");

interface Collected extends Source {
  [collection]?: Collection | undefined;
}

interface Collection {
  readonly taker: BodyTaker;
  size: number;
  /** Holds the body in its first `size` bytes: the first chunk as it came, or a buffer with room for more. */
  bytes: Buffer;
}

function onData(this: Collected, chunk: Buffer): void {
  const collected = this[collection] as Collection;
  const size = collected.size + chunk.length;
  if (size > bodyBytesMax) {
    refuse(this, tooLarge());
    return;
  }
  if (collected.size === 0) collected.bytes = withoutSurroundings(chunk);
  else append(collected, chunk, size);
  collected.size = size;
  if (size > uncountedBytesMax) countHeld(this, collected.bytes.length);
}

function onEnd(this: Collected): void {
  const { taker, bytes, size } = this[collection] as Collection;
  stopHolding(this);
  if (!this.aborted) taker.takeBody(bytes.length === size ? bytes : bytes.subarray(0, size));
}

/**
 * A chunk is a view of everything that was read from the connection at once, and keeps all of it in memory. That is fine
 * for the moment in which a body is whole, but not for a small piece of a body whose rest does not come.
 */
function withoutSurroundings(chunk: Buffer): Buffer {
  return chunk.buffer.byteLength > surroundingsBytesMax && chunk.length < surroundingsBytesMax
    ? Buffer.from(chunk)
    : chunk;
}

/** Into one buffer: a list of chunks would cost a hundred bytes and more for each byte that comes alone. */
function append(collected: Collection, chunk: Buffer, size: number): void {
  const { bytes } = collected;
  // Full, as the first chunk always is: nothing is written into memory that is not ours.
  if (size > bytes.length) {
    const roomier = Buffer.allocUnsafeSlow(Math.min(Math.max(2 * size, 1024), bodyBytesMax));
    bytes.copy(roomier, 0, 0, collected.size);
    collected.bytes = roomier;
  }
  collected.bytes.set(chunk, collected.size);
}

function refuse(source: Collected, error: ApiError): void {
  const { taker } = source[collection] as Collection;
  stopHolding(source);
  // What is still coming is read and dropped, so that the client gets to see the answer.
  source.off("data", onData).off("end", onEnd).resume();
  taker.takeBody(error);
}

const nothing = Buffer.alloc(0);
const surroundingsBytesMax = 8192;

function tooLarge(): ApiError {
  return new ApiError("PAYLOAD_TOO_LARGE", `the body is larger than ${bodyBytesMax} bytes`);
}

/* Each body is bounded, but not their number: what all of those that are not whole yet hold together has a bound too. */

/** Bodies up to this size are not counted: most are smaller, and whole at once. */
const uncountedBytesMax = 2048;
/** In all bodies that are not whole yet, in this thread. */
const heldBytesMax = 16 * 1024 * 1024;

/** The oldest first. */
const held = new Map<Collected, number>();
let heldBytes = 0;

function countHeld(source: Collected, bytes: number): void {
  const before = held.get(source);
  if (before === bytes) return;
  if (before === undefined) source.on("close", forgetClosed).on(evicted, onEvicted);
  held.set(source, bytes);
  heldBytes += bytes - (before ?? 0);
  // Most bodies are whole within milliseconds: the one that has taken longest is the least likely to become so.
  for (const oldest of held.keys()) {
    if (heldBytes <= heldBytesMax) return;
    // As an event of its own: what is thrown over it must destroy that connection, not the one whose bytes have just come.
    oldest.emit(evicted);
  }
}

function stopHolding(source: Collected): void {
  source[collection] = undefined;
  const bytes = held.get(source);
  if (bytes === undefined) return;
  held.delete(source);
  heldBytes -= bytes;
}

function forgetClosed(this: Collected): void {
  // A request over HTTP/2 emits `end` after `close`.
  this.off("data", onData).off("end", onEnd);
  stopHolding(this);
}

const evicted = Symbol("evicted");

function onEvicted(this: Collected): void {
  const message = "too many requests are half sent; try again";
  refuse(this, new ApiError("SERVICE_UNAVAILABLE", message, { retryAfterMs: 1000 }));
}
