import { hotMethods, routes } from "../../../gen/latchkey/v1/services.ts";
import { RequestReader } from "../../../src/rpc/fast-path/request-reader.ts";
import { pathOf } from "../../../src/rpc/http-handler.ts";
import { bodyBytesMax } from "../../../src/rpc/read-body.ts";

/* The one place of this harness that knows how the service's own reader of requests is called. */

export type ReaderAnswer =
  /** A whole request, which the service answers without asking Node's parser. */
  | { readonly status: "taken"; readonly bodyStart: number; readonly end: number; readonly isLast: boolean }
  /** Supported so far: the service waits for more bytes. */
  | { readonly status: "incomplete" }
  /** Node's parser gets these bytes. */
  | { readonly status: "unsupported" };

/** What the service does with the request that begins at `start`. */
export type ReadRequest = (bytes: Buffer, start: number) => ReaderAnswer;

const json = { readsJson: true };
const page = { readsJson: false };
const jsonPaths = new Set(routes.filter(({ verb }) => verb === "POST").map(({ path }) => path));

/** As the service has it, whose Connect methods are Node's. */
export const reader = new RequestReader({
  hot: new Map(hotMethods.map(({ path }) => [path, json])),
  find(method, url) {
    const path = pathOf({ url });
    if (method === "POST" && jsonPaths.has(path)) return json;
    return path.startsWith("/latchkey.") ? undefined : page;
  },
  ignoresOrigin: true,
  bodyBytesMax,
});

export const readWithOurs: ReadRequest = (bytes, start) => {
  const found = reader.read(bytes, start);
  const { bodyStart, end, isLast } = reader;
  if (found === "supported") return { status: "taken", bodyStart, end, isLast };
  return { status: found === "incomplete" ? "incomplete" : "unsupported" };
};
