import type { IncomingMessage } from "node:http";
import type { Readable } from "node:stream";
import { ApiError } from "./api-error.ts";
import { handedOverOf, type ReadBody } from "./handed-over.ts";

export const bodyBytesMax = 65_536;

/** The client went away before its request was whole: there is nobody to answer. */
export class ClientGone extends Error {
  override readonly name = "ClientGone";
}

/** Reads the whole body, as it came: nothing is decompressed. Throws `ApiError` once it is too large, or `ClientGone`. */
export function readBody(req: IncomingMessage): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const takeBody = (body: ReadBody) => (body instanceof ApiError ? reject(body) : resolve(body));
    const handedOver = handedOverOf(req);
    if (handedOver !== undefined) {
      takeBody(handedOver);
      return;
    }
    collectBody(req, req.headers["content-length"], { takeBody });
    req.on("error", (cause) => reject(new ClientGone("the request broke off", { cause })));
    req.on("close", () => reject(new ClientGone("the request broke off")));
  });
}

/** Whoever a body is collected for. */
export interface BodyTaker {
  /** Called once: with the whole body, or as soon as it is too large. Never where the client goes away before. */
  takeBody(body: ReadBody): void;
}

/** Reads the source to its end. */
export function collectBody(source: Readable, contentLength: string | undefined, taker: BodyTaker): void {
  (source as Collected)[collection] = { taker, size: 0, first: undefined, chunks: undefined };
  source.on("data", onData);
  source.on("end", onEnd);
  if (contentLength !== undefined && Number(contentLength) > bodyBytesMax) refuse(source as Collected);
}

/*
 * What is known of a body hangs on its source, where the listeners, the same for all, find it: closures for each would stay
 * with the source to its end, and the garbage collector would have to carry them along.
 */

const collection = Symbol("collection");

interface Collected extends Readable {
  [collection]?: Collection | undefined;
}

interface Collection {
  readonly taker: BodyTaker;
  size: number;
  first: Buffer | undefined;
  /** Where there is more than one. */
  chunks: Buffer[] | undefined;
}

function onData(this: Collected, chunk: Buffer): void {
  const collected = this[collection] as Collection;
  collected.size += chunk.length;
  if (collected.size > bodyBytesMax) refuse(this);
  else if (collected.first === undefined) collected.first = chunk;
  else if (collected.chunks === undefined) collected.chunks = [collected.first, chunk];
  else collected.chunks.push(chunk);
}

function onEnd(this: Collected): void {
  const { taker, first, chunks } = this[collection] as Collection;
  this[collection] = undefined;
  taker.takeBody(chunks === undefined ? (first ?? nothing) : Buffer.concat(chunks));
}

function refuse(source: Collected): void {
  const { taker } = source[collection] as Collection;
  source[collection] = undefined;
  // What is still coming is read and dropped, so that the client gets to see the answer.
  source.off("data", onData).off("end", onEnd).resume();
  taker.takeBody(new ApiError("PAYLOAD_TOO_LARGE", `the body is larger than ${bodyBytesMax} bytes`));
}

const nothing = Buffer.alloc(0);
