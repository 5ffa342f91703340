import { once } from "node:events";
import { createServer, type IncomingMessage, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { inspect } from "node:util";
import { onTestFinished } from "vitest";
import { LatchkeyError } from "../../src/sdk/index.ts";

export interface SeenRequest {
  readonly method: string | undefined;
  readonly path: string | undefined;
  readonly headers: IncomingMessage["headers"];
  readonly body: unknown;
}

/** A test server that records the requests. */
export async function serve(listener: RequestListener) {
  const requests: SeenRequest[] = [];
  const server = createServer(async (request, response) => {
    const { method, url: path, headers } = request;
    requests.push({ method, path, headers, body: JSON.parse(await text(request)) });
    listener(request, response);
  });
  const close = async () => {
    server.closeAllConnections();
    if (server.listening) await once(server.close(), "close");
  };
  onTestFinished(close);
  await once(server.listen(0, "127.0.0.1"), "listening");
  return { baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests, close };
}

export function sendJson(status: number, body: unknown, headers = {}): RequestListener {
  return sendText(status, JSON.stringify(body), { "content-type": "application/json", ...headers });
}

export function sendText(status: number, body: string, headers = {}): RequestListener {
  return (_, response) => response.writeHead(status, headers).end(body);
}

export async function failureOf(call: Promise<unknown>): Promise<LatchkeyError> {
  const error = await call.then(
    () => new Error("the call succeeded"),
    (reason: unknown) => reason,
  );
  if (!(error instanceof LatchkeyError)) throw error;
  return error;
}

export function printed(value: unknown): string {
  return inspect(value, { depth: null, showHidden: true });
}
