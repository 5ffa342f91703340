import { hotMethods } from "../../../gen/latchkey/v1/keys_hot.ts";
import { RequestReader } from "../../../src/rpc/hot/request-reader.ts";
import { bodyBytesMax } from "../../../src/rpc/read-body.ts";

/* The one place of this harness that knows how the service's own reader of requests is called. */

export type ReaderAnswer =
  /** A whole request, which the service answers without asking Node's parser. */
  | { readonly status: "taken"; readonly bodyStart: number; readonly end: number }
  /** Supported so far: the service waits for more bytes. */
  | { readonly status: "incomplete" }
  /** Node's parser gets these bytes. */
  | { readonly status: "unsupported" };

/** What the service does with the request that begins at `start`. */
export type ReadRequest = (bytes: Buffer, start: number) => ReaderAnswer;

const reader = new RequestReader(new Map(hotMethods.map((method) => [method.path, method])), bodyBytesMax);

export const readWithOurs: ReadRequest = (bytes, start) => {
  const found = reader.read(bytes, start);
  if (found === "supported") return { status: "taken", bodyStart: reader.bodyStart, end: reader.end };
  // The end of another request is used only where Node's parser has found the same.
  return { status: found === "incomplete" ? "incomplete" : "unsupported" };
};
