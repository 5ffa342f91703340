import net from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import { getRequest, hello } from "../faults/hostile/http2-frames.ts";

/* Callers that open a connection for each request, and keep book. */

export interface FreshBook {
  answered: number;
  /** Connected, sent a request, and got no answer: what must not happen. */
  lost: string[];
}

const alive = '{"status":"alive"}';
const overHttp1 = "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n";
const overHttp2 = Buffer.concat([hello(), getRequest(1, "/livez")]);

/** Asks over one new connection after the other, until the port takes none. */
export async function callOverFreshConnections(port: number, book: FreshBook, version: 1 | 2): Promise<void> {
  const request = version === 1 ? overHttp1 : overHttp2;
  for (;;) {
    const outcome = await askOnce(port, request);
    if (outcome === "refused") return;
    if (outcome === "answered") book.answered++;
    else book.lost.push(`HTTP/${version}: ${outcome}`);
    await nextTurn();
  }
}

function askOnce(port: number, request: string | Buffer): Promise<string> {
  return new Promise((resolve) => {
    let isConnected = false;
    let heard = "";
    const socket = net.connect({ port, host: "127.0.0.1", noDelay: true });
    socket.on("connect", () => {
      isConnected = true;
      socket.write(request);
    });
    socket.on("data", (chunk: Buffer) => {
      heard += chunk.toString("latin1");
      if (!heard.includes(alive)) return;
      socket.destroy();
      resolve("answered");
    });
    socket.on("error", (error: NodeJS.ErrnoException) => resolve(isConnected ? (error.code ?? "error") : "refused"));
    socket.on("close", () => resolve("closed without an answer"));
  });
}
