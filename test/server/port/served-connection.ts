import net from "node:net";
import { expect, onTestFinished } from "vitest";
import { hotMethods } from "../../../gen/latchkey/v1/keys_hot.ts";
import { createLog } from "../../../src/ambient/log.ts";
import { createMetrics } from "../../../src/ambient/metrics.ts";
import type { Call, Endpoint } from "../../../src/rpc/call.ts";
import { Http1FastPath } from "../../../src/rpc/fast-path/http1-fast-path.ts";
import { jsonAnswer } from "../../../src/rpc/respond.ts";
import { defaultTimeouts, type Timeouts } from "../../../src/server/port/connections.ts";
import { Guard } from "../../../src/server/port/guard.ts";
import { OnePort } from "../../../src/server/port/one-port.ts";
import { TestClock } from "../../support/test-clock.ts";

/* A connection on the fast path, with a method that answers when the test says so, and paths that only Node serves. */

const [verify] = hotMethods;

interface Held {
  readonly key: string;
  answer(): void;
}

export async function listen(timeouts: Partial<Timeouts> = {}) {
  const held: Held[] = [];
  const handed: string[] = [];
  const readBy: string[] = [];
  let ids = 0;
  const endpoint = { method: verify?.method, permission: "keys.verify", isPublic: true } as unknown as Endpoint;
  let served: net.Socket | undefined;
  const fastPath = new Http1FastPath({
    methods: [{ verb: "POST", path: verify?.path ?? "", endpoint, codec: verify }],
    pages: new Map([["/page", () => jsonAnswer(200, "{}")]]),
    nodePaths: new Set(["/other", "/later", "/early", "/upgrade"]),
    ignoresOrigin: true,
    onRefused: () => {},
    log: createLog("error", () => {}),
    newRequestId: () => `req_${ids++}`,
    httpDate: () => "now",
    keepAliveMs: 75_000,
    runCall(call: Call) {
      const { key } = call.read() as unknown as { key: string };
      const response = { valid: true, code: "VALID", keyId: key, requestId: call.requestId };
      if (!key.startsWith("later")) return response;
      return new Promise((resolve) => held.push({ key, answer: () => resolve(response) }));
    },
  });
  const guard = new Guard({ clock: new TestClock(), log: createLog("error", () => {}), metrics: createMetrics() });
  const watch = guard.watch.bind(guard);
  guard.watch = (emitter) => {
    if (emitter instanceof net.Socket) served = emitter;
    watch(emitter);
  };
  const port = new OnePort({
    listener(req, res) {
      handed.push(req.url ?? "");
      if (req.url === "/later") {
        held.push({ key: "node", answer: () => void res.end("theirs") });
        return;
      }
      if (req.url === "/early") res.end("early");
      else req.resume().on("end", () => res.end("theirs"));
    },
    malformed: () => "HTTP/1.1 400 Bad Request\r\n\r\n",
    guard,
    fastPath,
    onHttp1Request: (reader) => readBy.push(reader),
    timeouts: { ...defaultTimeouts, ...timeouts },
  });
  onTestFinished(() => port.close(0));
  const socket = net.connect(await port.listen(0, "127.0.0.1"), "127.0.0.1");
  socket.on("error", () => {});
  onTestFinished(() => void socket.destroy());
  let heard = "";
  const startReading = () => socket.setEncoding("latin1").on("data", (text: string) => (heard += text));
  /** The keys that were answered, in order. */
  const answered = () => [...heard.matchAll(/"keyId":"(\w+)"/g)].map(([, key]) => key);
  /** All answers, ours and Node's: a request that arrives in pieces may go to Node. */
  const answers = () => heard.split("HTTP/1.1 200 OK").length - 1;
  /** The server's end of the connection. */
  const end = () => served;
  return { port, socket, served: end, held, handed, readBy, hear: startReading, answered, answers, heard: () => heard };
}

export function ask(key: string, body = JSON.stringify({ key })): string {
  const head = `POST /v1/keys.verifyKey HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: ${body.length}`;
  return `${head}\r\n\r\n${body}`;
}

/** So that what would happen next has happened. */
export async function severalTurns(): Promise<void> {
  for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setImmediate(resolve));
}

export const until = (condition: () => boolean) => expect.poll(condition, { interval: 10, timeout: 60_000 }).toBe(true);
