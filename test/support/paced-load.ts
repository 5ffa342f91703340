import net from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import type { LoggedAnswer } from "./answer-log.ts";

export interface PacedLoadOptions {
  readonly baseUrls: readonly string[];
  readonly key: string;
  /** Calls per second in all, spread evenly over the replicas. */
  readonly perSecond: number;
  readonly ms: number;
}

/** Connections to one replica; calls beyond them wait, and their wait counts as latency. */
const connectionsMax = 64;
/** The load ends after this time, even if the service hangs. */
const graceMs = 10_000;

/**
 * Verifies a key at a steady pace, whether answers come or not, over connections that stay open. An answer that does not
 * come at all is logged as status 0. Resolves when everything sent has been answered.
 */
export async function pacedLoad(
  { baseUrls, key, perSecond, ms }: PacedLoadOptions,
  isOver: () => boolean = () => false,
): Promise<LoggedAnswer[]> {
  const log: LoggedAnswer[] = [];
  const pools = baseUrls.map((baseUrl, replica) => new ConnectionPool(baseUrl, key, replica, log));
  const startMs = performance.now();
  let sent = 0;
  while (performance.now() - startMs < ms && !isOver()) {
    const due = Math.ceil(((performance.now() - startMs) * perSecond) / 1000);
    for (; sent < due; sent++) pools[sent % pools.length]?.send();
    await delay(1);
  }
  const untilMs = performance.now() + graceMs;
  while (log.length < sent && performance.now() < untilMs) await delay(5);
  for (const pool of pools) pool.close();
  // Connections that were still busy say so as they close.
  while (log.length < sent) await delay(1);
  return log;
}

/** Unix time, without the steps of the wall clock. */
export function steadyUnixMs(): number {
  return performance.timeOrigin + performance.now();
}

/**
 * HTTP/1.1 by hand: at these rates Node's client would take more of the machine than the replicas under test, and late
 * callers would be measured instead of late counts.
 */
class ConnectionPool {
  readonly #port: number;
  readonly #request: string;
  readonly #replica: number;
  readonly #log: LoggedAnswer[];
  readonly #idle: net.Socket[] = [];
  /** Of every connection, when its last call was made. */
  readonly #sentMs = new Map<net.Socket, number>();
  readonly #waiting: number[] = [];

  constructor(baseUrl: string, key: string, replica: number, log: LoggedAnswer[]) {
    this.#port = Number(new URL(baseUrl).port);
    const body = JSON.stringify({ key });
    const head = ["POST /v1/keys.verifyKey HTTP/1.1", "host: 127.0.0.1", "content-type: application/json"];
    this.#request = `${[...head, `content-length: ${body.length}`].join("\r\n")}\r\n\r\n${body}`;
    this.#replica = replica;
    this.#log = log;
  }

  send(): void {
    const socket = this.#idle.pop() ?? this.#connect();
    if (socket === undefined) this.#waiting.push(steadyUnixMs());
    else this.#ask(socket, steadyUnixMs());
  }

  /** Requests without an answer by now count as unanswered. */
  close(): void {
    for (const sentMs of this.#waiting.splice(0)) this.#note(sentMs, 0, "{}");
    for (const socket of this.#sentMs.keys()) socket.destroy();
  }

  #ask(socket: net.Socket, sentMs: number): void {
    this.#sentMs.set(socket, sentMs);
    socket.write(this.#request);
  }

  #connect(): net.Socket | undefined {
    if (this.#sentMs.size >= connectionsMax) return undefined;
    const socket = net.connect({ host: "127.0.0.1", port: this.#port, noDelay: true });
    let text = "";
    socket.setEncoding("latin1");
    socket.on("data", (chunk) => {
      text += chunk;
      const body = wholeBody(text);
      if (body === undefined) return;
      this.#note(this.#sentMs.get(socket), Number(text.slice(9, 12)), body);
      text = "";
      const waitedSinceMs = this.#waiting.shift();
      if (waitedSinceMs === undefined) this.#idle.push(socket);
      else this.#ask(socket, waitedSinceMs);
    });
    socket.on("error", () => {});
    socket.on("close", () => {
      const idleAt = this.#idle.indexOf(socket);
      if (idleAt >= 0) this.#idle.splice(idleAt, 1);
      else this.#note(this.#sentMs.get(socket), 0, "{}");
      this.#sentMs.delete(socket);
    });
    return socket;
  }

  #note(sentMs: number | undefined, status: number, body: string): void {
    const { code = "", ratelimit } = JSON.parse(body) as { code?: string; ratelimit?: { reset: number } };
    const answer = { replica: this.#replica, sentMs: sentMs ?? Number.NaN, answeredMs: steadyUnixMs(), status, code };
    this.#log.push({ ...answer, resetMs: ratelimit?.reset ?? Number.NaN });
  }
}

/** The body of a response once it is all there. */
function wholeBody(text: string): string | undefined {
  const end = text.indexOf("\r\n\r\n");
  if (end < 0) return undefined;
  const length = Number(/content-length: (\d+)/i.exec(text)?.[1]);
  if (Number.isNaN(length)) throw new Error(`an answer of unknown length: ${text.slice(0, end)}`);
  return text.length < end + 4 + length ? undefined : text.slice(end + 4);
}
