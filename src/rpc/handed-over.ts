import type { ApiError } from "./api-error.ts";

/**
 * What a thin handler had already done for a request when it left it to the reference path, by the object that stands for
 * the request: Node's message over HTTP/1.1, its stream over HTTP/2. The reference goes on from there.
 */
export interface HandedOver {
  /** The body as it came; or why there is none. */
  readonly body: Buffer | ApiError;
}

const requests = new WeakMap<object, HandedOver>();

export function handOver(request: object, done: HandedOver): void {
  requests.set(request, done);
}

/** Undefined for a request that nobody has touched. */
export function handedOverOf(req: object): HandedOver | undefined {
  return requests.get("stream" in req ? (req.stream as object) : req);
}
