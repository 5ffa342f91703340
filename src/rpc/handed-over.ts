import type { ApiError } from "./api-error.ts";

/** A body as it came; or why there is none. */
export type ReadBody = Buffer | ApiError;

/**
 * The bodies that a thin handler had already read of requests when it left them to the reference path, by the object that
 * stands for the request: Node's message over HTTP/1.1, its stream over HTTP/2. The reference goes on from there.
 */
const bodies = new WeakMap<object, ReadBody>();

export function handOver(request: object, body: ReadBody): void {
  bodies.set(request, body);
}

/** Undefined for a request that nobody has touched. */
export function handedOverOf(req: object): ReadBody | undefined {
  return bodies.get("stream" in req ? (req.stream as object) : req);
}
