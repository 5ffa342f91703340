import type { ServerResponse } from "node:http";
import type { UniversalServerResponse } from "@connectrpc/connect/protocol";

/* Between Connect's idea of an HTTP exchange and Node's. */

/** Writes a response of Connect's, trailers included. Stops where the client goes away. */
export async function sendUniversalResponse(
  response: UniversalServerResponse,
  res: ServerResponse,
  requestId: string,
): Promise<void> {
  const writeHead = () => {
    if (res.headersSent) return;
    res.writeHead(response.status, { ...plain(response.header), "x-request-id": requestId });
  };
  for await (const chunk of response.body ?? []) {
    if (res.destroyed) return;
    // Not before the first chunk: until then the implementation may still set headers.
    writeHead();
    if (!res.write(chunk)) await drained(res);
  }
  if (res.destroyed) return;
  writeHead();
  if (response.trailer) res.addTrailers(plain(response.trailer));
  res.end();
}

/** Fires when the client has gone, or has been answered. */
export function abortSignalOf(res: ServerResponse): AbortSignal {
  const controller = new AbortController();
  res.once("close", () => controller.abort());
  return controller.signal;
}

/** Resolves when more can be written, or never will be. */
function drained(res: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      res.off("drain", done).off("close", done);
      resolve();
    };
    res.on("drain", done).on("close", done);
  });
}

/** As Node takes them. */
export function plain(headers: Headers | undefined): Record<string, string> {
  const entries = Object.fromEntries(headers ?? []);
  const message = entries["grpc-message"];
  // Connect escapes more than gRPC asks for, and some clients take back only what gRPC asks for.
  if (message !== undefined) entries["grpc-message"] = escapeGrpcMessage(decodeURIComponent(message));
  return entries;
}

/** Leaves printable ASCII as it is, but for the percent sign. */
function escapeGrpcMessage(message: string): string {
  return message.replace(/[^ -$&-~]+/gu, encodeURIComponent);
}
