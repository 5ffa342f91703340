import { hotMethods } from "../../../gen/latchkey/v1/keys_hot.ts";
import { PlainRequestReader } from "../../../src/rpc/hot/plain-request.ts";

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

const reader = new PlainRequestReader(new Map(hotMethods.map((method) => [method.path, method])));

export const readWithOurs: ReadRequest = (bytes, start) => {
  if (reader.read(bytes, start) === undefined) return { status: "unsupported" };
  return { status: "taken", bodyStart: reader.bodyStart, end: reader.end };
};
