import { once } from "node:events";
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
    if (!res.write(chunk)) await Promise.race([once(res, "drain"), once(res, "close")]);
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

function plain(headers: Headers | undefined): Record<string, string> {
  return Object.fromEntries(headers ?? []);
}
