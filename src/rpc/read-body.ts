import type { IncomingMessage } from "node:http";
import type { Readable } from "node:stream";
import { ApiError } from "./api-error.ts";
import { handedOverOf } from "./handed-over.ts";

export const bodyBytesMax = 65_536;

/** The client went away before its request was whole: there is nobody to answer. */
export class ClientGone extends Error {
  override readonly name = "ClientGone";
}

/** Reads the whole body, as it came: nothing is decompressed. Throws `ApiError` once it is too large, or `ClientGone`. */
export function readBody(req: IncomingMessage): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const done = (body: Buffer | ApiError) => (body instanceof ApiError ? reject(body) : resolve(body));
    const handedOver = handedOverOf(req);
    if (handedOver !== undefined) {
      done(handedOver.body);
      return;
    }
    collectBody(req, req.headers["content-length"], done);
    req.on("error", (cause) => reject(new ClientGone("the request broke off", { cause })));
    req.on("close", () => reject(new ClientGone("the request broke off")));
  });
}

/** Calls back once: with the whole body, or as soon as it is too large. Never where the client goes away before. */
export function collectBody(
  source: Readable,
  contentLength: string | undefined,
  done: (body: Buffer | ApiError) => void,
): void {
  let first: Buffer | undefined;
  let chunks: Buffer[] | undefined;
  let size = 0;
  const onData = (chunk: Buffer) => {
    size += chunk.length;
    if (size > bodyBytesMax) tooLarge();
    else if (first === undefined) first = chunk;
    else if (chunks === undefined) chunks = [first, chunk];
    else chunks.push(chunk);
  };
  const onEnd = () => done(chunks === undefined ? (first ?? nothing) : Buffer.concat(chunks));
  const tooLarge = () => {
    // What is still coming is read and dropped, so that the client gets to see the answer.
    source.off("data", onData).off("end", onEnd).resume();
    done(new ApiError("PAYLOAD_TOO_LARGE", `the body is larger than ${bodyBytesMax} bytes`));
  };
  source.on("data", onData);
  source.on("end", onEnd);
  if (contentLength !== undefined && Number(contentLength) > bodyBytesMax) tooLarge();
}

const nothing = Buffer.alloc(0);
