import { fork } from "node:child_process";
import { once } from "node:events";
import http from "node:http";
import http2 from "node:http2";
import { join } from "node:path";
import { expect, vi } from "vitest";
import { sized } from "../../support/deep.ts";
import { testRootKey } from "../../support/test-root-key.ts";
import { RawSocket } from "./raw-socket.ts";
import type { FromTarget, TargetState } from "./target.ts";

export interface Target {
  readonly port: number;
  readonly pid: number;
  /** Rejects when the process has ended, which it does when it is stopped, too. */
  readonly ended: Promise<never>;
  state(): Promise<TargetState>;
  /** A new connection to it. */
  dial(): RawSocket;
  /** Those that were dialled. */
  readonly sockets: readonly RawSocket[];
  /** Ends all of them. */
  hangUpAll(): void;
  /** Fails unless the process lives, serves over both versions of HTTP in time, and has complained of nothing. */
  expectUnharmed(): Promise<void>;
  /** Resolves once every connection is gone; fails when one stays. */
  expectNoConnections(withinMs: number): Promise<void>;
  stop(): void;
}

/** A target that was harmed serves after a time-out of many seconds, or never. In `npm test`, only an end to a hang. */
const servedWithinMs = sized(120_000, 10_000);

/**
 * A broken one has faults on purpose (see test/hostile/attack/broken-key-store.ts). A patient one waits for its clients as
 * long as the service does.
 */
export async function startTarget(kind: "sound" | "broken" | "patient" = "sound"): Promise<Target> {
  const child = fork(join(import.meta.dirname, "target.ts"), [kind], { execArgv: ["--expose-gc"] });
  const ended = once(child, "exit").then(([code, signal]) => expect.fail(`the target has ended: ${code ?? signal}`));
  ended.catch(() => {});
  const nextMessage = async () => {
    const received = new Promise<FromTarget>((resolve) => child.once("message", resolve as () => void));
    return Promise.race([received, ended]);
  };
  const { port } = (await nextMessage()) as { port: number };

  async function state(): Promise<TargetState> {
    child.send("state");
    return ((await nextMessage()) as { state: TargetState }).state;
  }

  const sockets: RawSocket[] = [];
  return {
    port,
    pid: child.pid as number,
    ended,
    state,
    sockets,
    dial() {
      const socket = new RawSocket(port);
      sockets.push(socket);
      return socket;
    },
    hangUpAll() {
      for (const socket of sockets.splice(0)) socket.hangUp();
    },
    async expectUnharmed() {
      const startedMs = performance.now();
      expect(await createOver1(port)).toContain('"key":');
      expect(await verifyOver2(port)).toContain("NOT_FOUND");
      expect(performance.now() - startedMs).toBeLessThan(servedWithinMs);
      const { complaints, servingFailures } = await state();
      expect(complaints).toEqual([]);
      expect(servingFailures).toBe(0);
    },
    async expectNoConnections(withinMs) {
      await vi.waitFor(async () => expect((await state()).connections).toBe(0), { timeout: withinMs, interval: 25 });
    },
    stop: () => child.disconnect(),
  };
}

function createOver1(port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${testRootKey}`, "content-type": "application/json" };
    const options = { host: "127.0.0.1", port, method: "POST", path: "/v1/keys.createKey", headers, agent: false };
    const req = http.request(options, (res) => {
      let text = "";
      res.on("data", (chunk) => {
        text += chunk;
      });
      res.on("end", () => resolve(text));
    });
    req.on("error", reject).end('{"apiId":"good"}');
  });
}

function verifyOver2(port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const session = http2.connect(`http://127.0.0.1:${port}`);
    session.on("error", reject);
    const headers = { ":method": "POST", ":path": "/v1/keys.verifyKey", "content-type": "application/json" };
    const stream = session.request(headers);
    let text = "";
    stream.on("data", (chunk) => {
      text += chunk;
    });
    stream.on("error", reject).on("end", () => {
      session.close();
      resolve(text);
    });
    stream.end('{"key":"nothing"}');
  });
}
