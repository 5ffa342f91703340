import { once } from "node:events";
import net from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { formatKey } from "../../src/domain/key-format.ts";
import { isDeep } from "../support/deep.ts";
import { type LatchkeyProcess, startLatchkey } from "../support/latchkey-process.ts";
import { postJson } from "../support/post-json.ts";
import { readMetric } from "../support/read-metric.ts";
import { tempFolder } from "../support/temp-folder.ts";
import { testRootKey } from "../support/test-root-key.ts";
import { RawSocket } from "./hostile/raw-socket.ts";

/* Bytes that once ended, filled or held up the process: against the real one. */

const megabyte = 1024 * 1024;
/** Bytes in flight of one connection, with room for garbage that is not collected yet. */
const growthMax = 80 * megabyte;

// Both processes at the same time; the tests of each process one after the other.
const inTurn = { concurrent: false };

describe.concurrent.each(["on", "off"])("with the fast path %s", (fastPath) => {
  let latchkey: LatchkeyProcess;
  let port: number;
  const ends: (() => void)[] = [];
  const sockets: RawSocket[] = [];

  beforeAll(async () => {
    const environment = {
      LATCHKEY_DATA_DIR: tempFolder((end) => ends.push(end)),
      LATCHKEY_ROOT_KEY: testRootKey,
      LATCHKEY_FAST_PATH: fastPath,
    };
    latchkey = await startLatchkey(environment, undefined, (end) => ends.push(end));
    port = Number(new URL(latchkey.baseUrl).port);
  });

  afterAll(() => {
    for (const socket of sockets) socket.hangUp("abruptly");
    for (const end of ends) end();
  });

  function dial(to = port): RawSocket {
    const socket = new RawSocket(to);
    sockets.push(socket);
    return socket;
  }

  /** All answers to bytes of which the last answer ends the connection. */
  const everythingTo = (said: string) =>
    dial()
      .say(said)
      .hear(() => false);

  async function createKey(fields: object): Promise<string> {
    const headers = { authorization: `Bearer ${testRootKey}` };
    const { text } = await postJson(latchkey.baseUrl, "/v1/keys.createKey", { apiId: "a", ...fields }, headers);
    return JSON.parse(text).key;
  }

  const metric = (name: string) => readMetric(Number(new URL(latchkey.internalUrl).port), name);

  async function expectUnharmed(): Promise<void> {
    const { text } = await postJson(latchkey.baseUrl, "/v1/keys.verifyKey", { key: "nothing" });
    expect(text).toContain("NOT_FOUND");
    expect(await metric("latchkey_serving_failures_total")).toBe(0);
  }

  if (!isDeep) {
    it("CONNECT and a reset end nothing, on either port", inTurn, async () => {
      const ports = [port, Number(new URL(latchkey.internalUrl).port)];
      for (let round = 0; round < 40; round++) {
        for (const to of ports) {
          const socket = net.connect(to, "127.0.0.1");
          socket.on("error", () => {});
          await once(socket, "connect");
          socket.write("CONNECT x:80 HTTP/1.1\r\nHost: x:80\r\n\r\n");
          if (round % 2) await delay(1);
          socket.resetAndDestroy();
        }
      }
      await expectUnharmed();
    });

    it("a request in front of CONNECT gets its answer, and CONNECT a refusal", inTurn, async () => {
      const heard = await everythingTo(`${verification("nothing")}CONNECT x:80 HTTP/1.1\r\nHost: x:80\r\n\r\n`);
      expect([...heard.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status)).toEqual(["200", "400"]);
      expect(heard).toContain("NOT_FOUND");
    });

    it.each([65_537, 99_999, 100_000])(
      "a body of %i bytes behind a request that waits is too large",
      inTurn,
      async (length) => {
        const key = await createKey({ remaining: 10 });
        const large = verification("k".repeat(length - verification("").length + verification("").indexOf("{")));
        const size = Number(/Content-Length: (\d+)/.exec(large)?.[1]);
        expect(size).toBe(length);
        // Requests after an answer that ends the connection are neither executed nor charged.
        const heard = await everythingTo(verification(key) + large + verification(key));
        expect([...heard.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status)).toEqual(["200", "413"]);
        const { text } = await postJson(latchkey.baseUrl, "/v1/keys.verifyKey", { key });
        expect(JSON.parse(text).remaining).toBe(8);
      },
    );
  }

  // Bounds of memory and time.
  if (isDeep) {
    it("many large answers behind one that waits are not collected", inTurn, async () => {
      const counted = await createKey({ remaining: 1000 });
      const large = await createKey({ meta: { text: "m".repeat(16_000) } });
      await postJson(latchkey.baseUrl, "/v1/keys.verifyKey", { key: large });
      const before = await metric("process_resident_memory_bytes");
      const socket = dial().deafen();
      socket.say(verification(counted).repeat(300)).say(verification(large).repeat(45_000));
      await delay(2000);
      await expectUnharmed();
      const after = await metric("process_resident_memory_bytes");
      expect(after - before).toBeLessThan(growthMax);
      socket.hangUp("abruptly");
    });

    it("deep pipelining neither fills the process nor holds up others", inTurn, async () => {
      // Of the right form, so that each is looked up, and those behind it wait.
      const ask = verification(formatKey(undefined, Buffer.alloc(24, 7)).key);
      // The engine keeps memory that it once used for them, to use it again: growth counts from there.
      await Promise.all(Array.from({ length: 20 }, () => dial().say(ask.repeat(300)).finish().closed));
      const before = await metric("process_resident_memory_bytes");
      const crowd = Array.from({ length: 100 }, () => dial().deafen().say(ask.repeat(5000)));
      const waits: number[] = [];
      for (let round = 0; round < 40; round++) {
        const startedMs = performance.now();
        await expectUnharmed();
        waits.push(performance.now() - startedMs);
      }
      const after = await metric("process_resident_memory_bytes");
      expect(after - before).toBeLessThan(growthMax);
      // Each round is three requests. A loop that is held for 0.2 to 0.5 s by each of 100 connections answers none in time.
      expect(waits.toSorted((a, b) => a - b)[20]).toBeLessThan(1000);
      for (const socket of crowd) socket.hangUp("abruptly");
    });
  }
});

function verification(key: string): string {
  const body = JSON.stringify({ key });
  const head = "POST /v1/keys.verifyKey HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n";
  return `${head}Content-Length: ${body.length}\r\n\r\n${body}`;
}
