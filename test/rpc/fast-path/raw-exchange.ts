import http from "node:http";
import http2 from "node:http2";
import https from "node:https";
import net from "node:net";
import tls from "node:tls";
import { onTestFinished } from "vitest";

/** A request exactly as it is sent. It can be malformed. */
export interface RawRequest {
  readonly name: string;
  readonly over: "HTTP/1.1" | "HTTP/2" | "bytes";
  readonly method?: string;
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  /** Each goes out by itself. Over `bytes` they are all there is. */
  readonly chunks: readonly Buffer[];
}

/** Everything that came back, in order, without the parts that always differ. */
export type Heard = Readonly<Record<string, unknown>>;

export interface RawClient {
  /** The request ids in the answers. */
  readonly heardIds: ReadonlySet<string>;
  send(request: RawRequest): Promise<Heard>;
}

/** Only ends a hang. */
const patienceMs = 120_000;
const quietMs = 700;

/** Where to send to. With the certificate of an authority, over TLS. */
export interface RawTarget {
  readonly port: number;
  readonly ca?: string | undefined;
}

export function connectRaw(target: RawTarget): RawClient {
  const { port, ca } = target;
  const options = { keepAlive: true, maxSockets: 24 };
  const agent = ca === undefined ? new http.Agent(options) : new https.Agent({ ...options, ca });
  let session: http2.ClientHttp2Session | undefined;
  onTestFinished(() => {
    agent.destroy();
    session?.destroy();
  });
  const heardIds = new Set<string>();
  return {
    heardIds,
    async send(request) {
      if (request.over === "HTTP/1.1") return withoutIds(await overHttp1(target, agent, request), heardIds);
      if (request.over === "bytes") return withoutIds(await overSocket(target, request), heardIds);
      if (session === undefined || session.closed || session.destroyed) {
        session = http2.connect(`${ca === undefined ? "http" : "https"}://127.0.0.1:${port}`, { ca });
        session.on("error", () => {});
      }
      return withoutIds(await overHttp2(session, request), heardIds);
    },
  };
}

function overHttp1({ port, ca }: RawTarget, agent: http.Agent, request: RawRequest): Promise<Heard> {
  return new Promise((resolve) => {
    const { method = "POST", path = "/v1/keys.verifyKey", headers = {}, chunks } = request;
    const informed: number[] = [];
    const { request: open } = ca === undefined ? http : https;
    const req = open({ agent, host: "127.0.0.1", port, method, path, headers: headers as never });
    req.on("information", ({ statusCode }) => informed.push(statusCode));
    req.on("response", (res) => {
      const body: Buffer[] = [];
      res.on("data", (chunk) => body.push(chunk));
      const done = (end: string) => {
        const { statusCode, statusMessage, rawHeaders, rawTrailers } = res;
        resolve({ informed, statusCode, statusMessage, rawHeaders, rawTrailers, body: Buffer.concat(body), end });
      };
      res.on("end", () => done("end"));
      res.on("error", () => done("error"));
    });
    req.on("error", (error) => resolve({ error: (error as NodeJS.ErrnoException).code }));
    req.setTimeout(patienceMs, () => req.destroy());
    const [first, ...rest] = chunks;
    if (rest.length === 0) {
      req.end(first);
      return;
    }
    for (const chunk of chunks) req.write(chunk);
    req.end();
  });
}

function overHttp2(session: http2.ClientHttp2Session, request: RawRequest): Promise<Heard> {
  return new Promise((resolve) => {
    const { method = "POST", path = "/latchkey.v1.KeysService/VerifyKey", headers = {}, chunks } = request;
    const endStream = chunks.length === 0;
    const stream = session.request({ ":method": method, ":path": path, ...(headers as object) }, { endStream });
    const heard: Record<string, unknown> = {};
    const body: Buffer[] = [];
    stream.on("continue", () => Object.assign(heard, { informed: [100] }));
    stream.on("response", (_, __, rawHeaders) => Object.assign(heard, { rawHeaders }));
    stream.on("trailers", (_, __, rawTrailers) => Object.assign(heard, { rawTrailers }));
    stream.on("data", (chunk: Buffer) => body.push(chunk));
    stream.on("error", (error) => Object.assign(heard, { error: (error as NodeJS.ErrnoException).code }));
    stream.on("close", () => resolve({ ...heard, body: Buffer.concat(body), rstCode: stream.rstCode }));
    stream.setTimeout(patienceMs, () => stream.close());
    for (const chunk of chunks) stream.write(chunk);
    if (!endStream) stream.end();
  });
}

/** Reads until the server closes, as the sent bytes ask it to. A server that waits for more bytes gets a FIN. */
function overSocket({ port, ca }: RawTarget, { chunks }: RawRequest): Promise<Heard> {
  return new Promise((resolve) => {
    const heard: Buffer[] = [];
    const host = "127.0.0.1";
    const socket = ca === undefined ? net.connect({ port, host }) : tls.connect({ port, host, ca });
    socket.once(ca === undefined ? "connect" : "secureConnect", async () => {
      for (const chunk of chunks) {
        socket.write(chunk);
        // So that each arrives by itself.
        await new Promise((next) => setTimeout(next, 2));
      }
      socket.setTimeout(quietMs, () => socket.end());
    });
    socket.on("data", (chunk) => heard.push(chunk));
    socket.on("error", () => {});
    socket.on("close", () => resolve({ body: Buffer.concat(heard) }));
  });
}

const id = /req_[0-9A-Za-z]{22}/g;
const date = /\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT/g;

/** Replaces each id by the number of its first appearance, so that the same id in header and body stays the same. */
function withoutIds(heard: Heard, heardIds: Set<string>): Heard {
  const ids: string[] = [];
  const clean = (text: string) =>
    text.replace(date, "<date>").replace(id, (found) => {
      heardIds.add(found);
      if (!ids.includes(found)) ids.push(found);
      return `<id ${ids.indexOf(found)}>`;
    });
  return Object.fromEntries(
    Object.entries(heard).map(([name, value]) => {
      if (Buffer.isBuffer(value)) {
        // gRPC-Web has its trailers in the body, and Connect the details of an error.
        const text = value.toString("latin1").replace(/(?<=-bin: |"value":")[\w+/]+/g, fromBase64);
        return [name, clean(text)];
      }
      if (!name.startsWith("raw")) return [name, value];
      const list = value as readonly string[];
      return [name, list.map((text, index) => clean(list[index - 1]?.endsWith("-bin") ? fromBase64(text) : text))];
    }),
  );
}

function fromBase64(text: string): string {
  return Buffer.from(text, "base64").toString("latin1");
}
