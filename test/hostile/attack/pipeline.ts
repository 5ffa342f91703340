import net from "node:net";
import { pauseMs } from "./field.ts";

export function verifyRequest(key: string): string {
  const body = JSON.stringify({ key });
  const head = ["POST /v1/keys.verifyKey HTTP/1.1", "Host: x", "Content-Type: application/json"];
  return `${[...head, `Content-Length: ${body.length}`].join("\r\n")}\r\n\r\n${body}`;
}

/** Counts answers of HTTP/1.1 by their status, without keeping them: there may be hundreds of megabytes. */
export class AnswerCounter {
  readonly byStatus = new Map<string, number>();
  #tail: Buffer = Buffer.alloc(0);
  total = 0;

  take(chunk: Buffer): void {
    const bytes = this.#tail.length === 0 ? chunk : Buffer.concat([this.#tail, chunk]);
    let at = bytes.indexOf(statusLine);
    while (at !== -1 && at + statusEnd <= bytes.length) {
      const status = bytes.toString("latin1", at + statusLine.length, at + statusEnd);
      this.byStatus.set(status, (this.byStatus.get(status) ?? 0) + 1);
      this.total++;
      at = bytes.indexOf(statusLine, at + statusEnd);
    }
    // Shorter than a status line, so that none is counted twice.
    this.#tail = Buffer.from(bytes.subarray(Math.max(0, bytes.length - statusEnd + 1)));
  }
}

const statusLine = Buffer.from("HTTP/1.1 ");
const statusEnd = statusLine.length + 3;

export interface PipelineOptions {
  /** Bytes per write, so that one connection's writes do not delay the attacker's other connections. */
  readonly sliceBytes?: number;
  /** Called after each piece of the answers; the next piece is read when it has resolved. */
  readonly beforeReading?: () => Promise<void>;
}

const silentMsMax = 20_000;

/**
 * Sends requests without waiting for answers, reads all answers, and tells what is missing. The requests are whole and on a
 * connection that stays open: each has to be answered.
 */
export function pipeline(
  port: number,
  requests: Buffer,
  count: number,
  options: PipelineOptions = {},
): Promise<string[]> {
  const { sliceBytes = 65_536, beforeReading } = options;
  return new Promise((resolve) => {
    const answers = new AnswerCounter();
    const socket = net.connect({ port, host: "127.0.0.1", noDelay: true });
    const finish = (why: string) => {
      socket.destroy();
      const wrong = [...answers.byStatus].filter(([status]) => status !== "200" && status !== "503");
      resolve([
        ...(answers.total === count ? [] : [`${answers.total} of ${count} whole requests were answered: ${why}`]),
        ...wrong.map(([status, times]) => `a good request was answered with ${status}, ${times} times`),
      ]);
    };
    socket.setTimeout(silentMsMax, () => finish(`nothing moved for ${silentMsMax} ms`));
    socket.on("error", (error) => finish(error.message));
    socket.on("close", () => finish("the server closed the connection"));
    socket.on("data", async (chunk) => {
      answers.take(chunk);
      if (answers.total >= count) return finish("");
      if (beforeReading === undefined) return;
      socket.pause();
      await beforeReading();
      socket.resume();
    });
    void sendSlowly(socket, requests, sliceBytes);
  });
}

/** Sends as fast as the other side takes it. Resolves when all was sent, or when nothing was taken for a while. */
export async function sendSlowly(
  socket: net.Socket,
  bytes: Buffer,
  sliceBytes: number,
  stuckMs = 60_000,
): Promise<void> {
  for (let at = 0; at < bytes.length && !socket.destroyed; at += sliceBytes) {
    if (socket.write(bytes.subarray(at, at + sliceBytes))) continue;
    const drained = new Promise<boolean>((resolve) => {
      socket.once("drain", () => resolve(true));
      socket.once("close", () => resolve(false));
    });
    if (!(await Promise.race([drained, pauseMs(stuckMs).then(() => false)]))) return;
  }
}
