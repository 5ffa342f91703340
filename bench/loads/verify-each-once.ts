import { openSync, readSync } from "node:fs";
import net from "node:net";
import type { KeyFile } from "./wrk-scripts.ts";

export interface EachOnceOptions {
  readonly connections?: number;
  /** Requests that are sent together, without waiting for the answers to those before. */
  readonly together?: number;
}

const answerMark = '"valid":true';
const refusalMark = "HTTP/1.1 5";

/** Has each of the keys verified once, as fast as the server can: that is how they come into its cache. */
export async function verifyEachOnce(
  port: number,
  keys: KeyFile,
  { connections = 8, together = 64 }: EachOnceOptions = {},
): Promise<void> {
  const file = openSync(keys.path, "r");
  const bytes = Buffer.alloc(together * keys.keyLength);
  const nextKeys = () => {
    const text = bytes.toString("latin1", 0, readSync(file, bytes));
    return Array.from({ length: text.length / keys.keyLength }, (_, i) =>
      text.slice(i * keys.keyLength).slice(0, keys.keyLength),
    );
  };
  const connection = async () => {
    const socket = net
      .connect({ host: "127.0.0.1", port, noDelay: true })
      .setEncoding("latin1")
      .on("error", () => {});
    for (let batch = nextKeys(); batch.length > 0; batch = nextKeys()) {
      socket.write(batch.map(requestFor).join(""));
      await receive(socket, batch.length);
    }
    socket.destroy();
  };
  await Promise.all(Array.from({ length: connections }, connection));
}

function requestFor(key: string): string {
  const body = JSON.stringify({ key });
  const head = ["POST /v1/keys.verifyKey HTTP/1.1", "host: 127.0.0.1", "content-type: application/json"];
  return `${[...head, `content-length: ${body.length}`].join("\r\n")}\r\n\r\n${body}`;
}

/** Resolves when so many answers have come. Throws when the connection ends before. */
function receive(socket: net.Socket, count: number): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  let missing = count;
  let rest = "";
  const read = (chunk: string) => {
    if (chunk.includes(refusalMark)) reject(new Error("a verification was not decided"));
    const parts = (rest + chunk).split(answerMark);
    missing -= parts.length - 1;
    rest = (parts.at(-1) as string).slice(1 - answerMark.length);
    if (missing === 0) resolve();
  };
  const fail = () => reject(new Error("the server ended the connection"));
  socket.on("data", read).on("close", fail);
  return promise.finally(() => socket.off("data", read).off("close", fail));
}
