import type { ServerResponse } from "node:http";
import type { Http2ServerResponse } from "node:http2";
import type { UniversalServerResponse } from "@connectrpc/connect/protocol";

/* Converts between Connect's HTTP requests and responses and those of Node. */

/** Writes a response of Connect, including trailers. Stops when the client disconnects. */
export async function sendUniversalResponse(
  response: UniversalServerResponse,
  res: ServerResponse,
  requestId: string,
): Promise<void> {
  const headers = () => ({ ...toNodeHeaders(response.header), "x-request-id": requestId });
  const writeHead = () => res.headersSent || res.writeHead(response.status, headers());
  for await (const chunk of response.body ?? []) {
    if (res.destroyed) return;
    // Only with the first chunk: before that the implementation may still set headers.
    writeHead();
    if (!res.write(chunk)) await drained(res);
  }
  if (res.destroyed) return;
  // An error before any message is one frame that ends the stream: clients repeat only calls of which they have seen no more.
  if (!res.headersSent && isGrpcError(response)) {
    const { stream } = res as unknown as Http2ServerResponse;
    const head = { ":status": response.status, ...headers(), ...toNodeHeaders(response.trailer) };
    stream.respond(head, { endStream: true });
    return;
  }
  writeHead();
  if (response.trailer) res.addTrailers(toNodeHeaders(response.trailer));
  res.end();
}

/** Whether gRPC itself has failed: gRPC-Web has its trailers in the body. */
function isGrpcError({ trailer }: UniversalServerResponse): boolean {
  return (trailer?.get("grpc-status") ?? "0") !== "0";
}

/** Fires when the client has gone or the answer was sent. */
export function abortSignalOf(res: ServerResponse): AbortSignal {
  const controller = new AbortController();
  res.once("close", () => controller.abort());
  return controller.signal;
}

/** Resolves when more can be written, or when the response has closed. */
function drained(res: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      res.off("drain", done).off("close", done);
      resolve();
    };
    res.on("drain", done).on("close", done);
  });
}

/** In the form that Node expects. */
export function toNodeHeaders(headers: Headers | undefined): Record<string, string> {
  const entries = Object.fromEntries(headers ?? []);
  const message = entries["grpc-message"];
  // Connect escapes more characters than gRPC requires, and some clients unescape only the required ones.
  if (message !== undefined) entries["grpc-message"] = escapeGrpcMessage(decodeURIComponent(message));
  return entries;
}

/** Keeps printable ASCII unchanged, except for the percent sign. */
function escapeGrpcMessage(message: string): string {
  return message.replace(/[^ -$&-~]+/gu, encodeURIComponent);
}
