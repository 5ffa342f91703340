import http from "node:http";
import http2 from "node:http2";
import net from "node:net";
import { onTestFinished } from "vitest";

/** A header with several values is sent once for each. An undefined one is not sent. */
export type HeaderValues = Record<string, string | string[] | undefined>;

export interface HttpRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: HeaderValues;
  readonly body: Uint8Array;
}

export interface HttpAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Buffer;
  readonly trailers: Headers;
}

/** Sends requests unchanged, even malformed ones, over HTTP/1.1 or HTTP/2. Rejects if no complete answer comes. */
export interface Wire {
  over1(request: HttpRequest): Promise<HttpAnswer>;
  over2(request: HttpRequest): Promise<HttpAnswer>;
}

/** `localAddress`: where the connections come from. */
export function connectWire(port: number, localAddress = "127.0.0.1"): Wire {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1, localAddress });
  let session: http2.ClientHttp2Session | undefined;
  onTestFinished(() => {
    agent.destroy();
    session?.destroy();
  });
  const sessionNow = () => {
    if (session === undefined || session.closed || session.destroyed) {
      session = http2.connect(`http://127.0.0.1:${port}`, {
        createConnection: () => net.connect({ host: "127.0.0.1", port, localAddress }),
      });
      session.on("error", () => {});
    }
    return session;
  };
  return {
    over1: (request) => sendOver1(port, agent, request),
    over2: (request) => sendOver2(sessionNow(), request),
  };
}

function sendOver1(port: number, agent: http.Agent, request: HttpRequest): Promise<HttpAnswer> {
  return new Promise((resolve, reject) => {
    const { method, path, body } = request;
    const chunked = request.headers["transfer-encoding"] !== undefined;
    const headers = defined({ "content-length": chunked ? undefined : String(body.length), ...request.headers });
    const req = http.request({ host: "127.0.0.1", port, agent, method, path, headers }, (res) => {
      const chunks: Buffer[] = [];
      res.on("data", (chunk: Buffer) => chunks.push(chunk));
      res.on("error", reject);
      res.on("end", () =>
        resolve({
          status: res.statusCode ?? 0,
          headers: toHeaders(res.headers),
          body: Buffer.concat(chunks),
          trailers: toHeaders(res.trailers),
        }),
      );
    });
    req.on("error", reject);
    req.end(body);
  });
}

function sendOver2(session: http2.ClientHttp2Session, request: HttpRequest): Promise<HttpAnswer> {
  return new Promise((resolve, reject) => {
    const { "transfer-encoding": _, ...headers } = defined(request.headers);
    const stream = session.request(
      { ":method": request.method, ":path": request.path, ...headers },
      { endStream: false },
    );
    const chunks: Buffer[] = [];
    let answered: http2.IncomingHttpHeaders & http2.IncomingHttpStatusHeader = {};
    let trailers: http2.IncomingHttpHeaders = {};
    stream.on("response", (received) => {
      answered = received;
      // An error over gRPC is one frame: what would be trailers elsewhere is among the headers.
      if (received["grpc-status"] === undefined) return;
      const { ":status": status, "content-type": type, "x-request-id": id, date, ...rest } = received;
      answered = { ":status": status, "content-type": type, "x-request-id": id, date } as typeof answered;
      trailers = rest;
    });
    stream.on("trailers", (received) => {
      trailers = received;
    });
    stream.on("data", (chunk: Buffer) => chunks.push(chunk));
    stream.on("error", reject);
    stream.on("close", () => {
      const { ":status": status, ...rest } = answered;
      if (status === undefined) reject(new Error(`the stream closed unanswered, with code ${stream.rstCode}`));
      else resolve({ status, headers: toHeaders(rest), body: Buffer.concat(chunks), trailers: toHeaders(trailers) });
    });
    stream.end(request.body);
  });
}

function defined(headers: HeaderValues): Record<string, string | string[]> {
  const kept = Object.entries(headers).filter((entry): entry is [string, string | string[]] => entry[1] !== undefined);
  return Object.fromEntries(kept);
}

function toHeaders(received: http.IncomingHttpHeaders | NodeJS.Dict<string>): Headers {
  const headers = new Headers();
  for (const [name, value] of Object.entries(received)) {
    if (!name.startsWith(":") && value !== undefined) headers.set(name, String(value));
  }
  return headers;
}
