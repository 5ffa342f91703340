import type { IncomingMessage } from "node:http";
import type { Readable } from "node:stream";
import { ApiError, noRoom } from "./api-error.ts";

export const bodyBytesMax = 65_536;

/** The bytes of a body, or the reason why there is none. */
export type ReadBody = Buffer | ApiError;

/**
 * Reads the whole body without decompressing it. Rejects with `ApiError` when it is too large. If the client
 * disconnects first, the promise stays pending: there is no client to answer, and all that waits for it is freed with
 * the request.
 */
export function readBody(req: IncomingMessage): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const takeBody = (body: ReadBody) => (body instanceof ApiError ? reject(body) : resolve(body));
    collectBody(req, req.headers["content-length"], { takeBody });
  });
}

/** Gets a collected body. */
export interface BodyTaker {
  /** Called once: with the whole body, or as soon as it is too large. Not called if the client disconnects first. */
  takeBody(body: ReadBody): void;
}

/** A request, or the HTTP/2 stream of one. */
interface Source extends Readable {
  /** True if the client disconnected too early. Over HTTP/2 the source then ends as if the body were complete. */
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
 * The state of a body is a property of its source, and all sources share the same listeners. With closures, each source
 * would keep its own until it ends: more work for the garbage collector.
 */

const collection = Symbol("collection");

interface Collected extends Source {
  [collection]?: Collection | undefined;
}

interface Collection {
  readonly taker: BodyTaker;
  size: number;
  /** Its first `size` bytes are the body so far. It is the first chunk itself, or a larger buffer. */
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
 * A chunk is a view of everything that was read from the connection at once, and keeps all of it in memory. That does
 * not matter for a complete body, which is freed soon. It matters for a small piece of a body whose rest never arrives.
 */
function withoutSurroundings(chunk: Buffer): Buffer {
  return chunk.buffer.byteLength > surroundingsBytesMax && chunk.length < surroundingsBytesMax
    ? Buffer.from(chunk)
    : chunk;
}

/** Uses one buffer. In a list of chunks, every byte that arrives alone would cost a hundred bytes or more. */
function append(collected: Collection, chunk: Buffer, size: number): void {
  const { bytes } = collected;
  // The first chunk is always full here, so its memory, which is not ours, is never written to.
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
  // The rest is read and dropped: otherwise the client would not read the answer.
  source.off("data", onData).off("end", onEnd).resume();
  taker.takeBody(error);
}

const nothing = Buffer.alloc(0);
const surroundingsBytesMax = 8192;

function tooLarge(): ApiError {
  return new ApiError("PAYLOAD_TOO_LARGE", `the body is larger than ${bodyBytesMax} bytes`);
}

/* The size of one body is bounded, but not the number of bodies. So all incomplete bodies together have a bound too. */

/** Bodies up to this size are not counted: most are smaller, and arrive in one piece. */
const uncountedBytesMax = 2048;
/** Bytes of all incomplete bodies of this thread. */
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
  // Most bodies are complete within milliseconds, so the oldest incomplete one is probably never completed.
  for (const oldest of held.keys()) {
    if (heldBytes <= heldBytesMax) return;
    // Emitted as an event: an exception must destroy that connection, not the one whose bytes have just arrived.
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
  refuse(this, noRoom("too many requests are half sent"));
}
