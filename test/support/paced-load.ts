import net from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { SeededRandom } from "../domain/seeded-random.ts";
import type { LoggedAnswer } from "./answer-log.ts";
import { type Limited, limitedKey } from "./limited.ts";
import { testRootKey } from "./test-root-key.ts";

export interface PacedLoadOptions {
  readonly baseUrls: readonly string[];
  /** A key with a limit, or whatever else has one. */
  readonly key: string | Limited;
  /** What calls cost, each as often as the others. By default 1. */
  readonly costs?: readonly number[];
  /** Calls per second in all, spread evenly over the replicas. */
  readonly perSecond: number;
  readonly ms: number;
}

/** Connections to one replica; calls beyond them wait, and their wait counts as latency. */
const connectionsMax = 64;
/** The load ends after this time, even if the service hangs. */
const graceMs = 10_000;

/**
 * Asks for one limit at a steady pace, whether answers come or not, over connections that stay open. An answer that does not
 * come at all is logged as status 0. Resolves when everything sent has been answered.
 */
export async function pacedLoad(
  { baseUrls, key, perSecond, ms, costs = [1] }: PacedLoadOptions,
  isOver: () => boolean = () => false,
): Promise<LoggedAnswer[]> {
  const log: LoggedAnswer[] = [];
  const limited = typeof key === "string" ? limitedKey(key) : key;
  const pools = baseUrls.map((baseUrl, replica) => new ConnectionPool(baseUrl, limited, replica, log));
  const random = new SeededRandom(1);
  const startMs = performance.now();
  let sent = 0;
  while (performance.now() - startMs < ms && !isOver()) {
    const due = Math.ceil(((performance.now() - startMs) * perSecond) / 1000);
    for (; sent < due; sent++) pools[sent % pools.length]?.send(random.pick(costs));
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
  readonly #limited: Limited;
  readonly #replica: number;
  readonly #log: LoggedAnswer[];
  readonly #idle: net.Socket[] = [];
  /** Of every connection, its last call. */
  readonly #calls = new Map<net.Socket, Call>();
  readonly #waiting: Call[] = [];

  constructor(baseUrl: string, limited: Limited, replica: number, log: LoggedAnswer[]) {
    this.#port = Number(new URL(baseUrl).port);
    this.#limited = limited;
    this.#replica = replica;
    this.#log = log;
  }

  send(cost: number): void {
    const call = { cost, sentMs: steadyUnixMs() };
    const socket = this.#idle.pop() ?? this.#connect();
    if (socket === undefined) this.#waiting.push(call);
    else this.#ask(socket, call);
  }

  /** Requests without an answer by now count as unanswered. */
  close(): void {
    for (const call of this.#waiting.splice(0)) this.#note(call, 0, "{}");
    for (const socket of this.#calls.keys()) socket.destroy();
  }

  #ask(socket: net.Socket, call: Call): void {
    this.#calls.set(socket, call);
    const body = JSON.stringify(this.#limited.body(call.cost));
    const head = [
      `POST /v1/${this.#limited.method} HTTP/1.1`,
      "host: 127.0.0.1",
      "content-type: application/json",
      `authorization: Bearer ${testRootKey}`,
      `content-length: ${body.length}`,
    ];
    socket.write(`${head.join("\r\n")}\r\n\r\n${body}`);
  }

  #connect(): net.Socket | undefined {
    if (this.#calls.size >= connectionsMax) return undefined;
    const socket = net.connect({ host: "127.0.0.1", port: this.#port, noDelay: true });
    let text = "";
    socket.setEncoding("latin1");
    socket.on("data", (chunk) => {
      text += chunk;
      const body = wholeBody(text);
      if (body === undefined) return;
      this.#note(this.#calls.get(socket) as Call, Number(text.slice(9, 12)), body);
      text = "";
      const waiting = this.#waiting.shift();
      if (waiting === undefined) this.#idle.push(socket);
      else this.#ask(socket, waiting);
    });
    socket.on("error", () => {});
    socket.on("close", () => {
      const idleAt = this.#idle.indexOf(socket);
      if (idleAt >= 0) this.#idle.splice(idleAt, 1);
      else this.#note(this.#calls.get(socket) as Call, 0, "{}");
      this.#calls.delete(socket);
    });
    return socket;
  }

  #note({ cost, sentMs }: Call, status: number, body: string): void {
    const { code, placed } = this.#limited.read(JSON.parse(body));
    const resetMs = placed?.resetMs ?? Number.NaN;
    this.#log.push({ replica: this.#replica, cost, sentMs, answeredMs: steadyUnixMs(), status, code, resetMs });
  }
}

interface Call {
  readonly cost: number;
  readonly sentMs: number;
}

/** The body of a response once it is all there. */
function wholeBody(text: string): string | undefined {
  const end = text.indexOf("\r\n\r\n");
  if (end < 0) return undefined;
  const length = Number(/content-length: (\d+)/i.exec(text)?.[1]);
  if (Number.isNaN(length)) throw new Error(`an answer of unknown length: ${text.slice(0, end)}`);
  return text.length < end + 4 + length ? undefined : text.slice(end + 4);
}
