import net from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it, vi } from "vitest";
import { isDeep, sized } from "../support/deep.ts";
import { engines } from "../support/engines.ts";
import { problemsWithUse, useUpTogether } from "../support/exact-usage.ts";
import { runLatchkey } from "../support/latchkey-process.ts";
import { crowd, openConnections } from "../support/open-connections.ts";
import { type Book, callOverGrpc, callOverHttp1 } from "../support/persistent-callers.ts";
import { tempFolder } from "../support/temp-folder.ts";
import { testRootKey } from "../support/test-root-key.ts";
import { share } from "./share.ts";
import { connections, expectAllServe, metric, pidsOfWorkers, start, workers } from "./start-workers.ts";

/** The engine is of no matter to some of these: `npm test` has them on one. */
const anEngine = sized(engines.slice(0, 1), engines);

describe.each(anEngine)(`${workers} workers of one process, on $name`, (engine) => {
  const shared = share(async () => start(await engine.environment()));

  if (isDeep) {
    // Before any other test has used the process.
    it("add their metrics up", async () => {
      const latchkey = shared();
      const { key } = await latchkey.client.createKey({ apiId: "api" });
      await crowd(openConnections(latchkey.baseUrl, connections), key, 5);
      await expectAllServe(latchkey);

      expect(await metric(latchkey, 'latchkey_verifications_total{code="VALID"}')).toBe(connections * 5);
      const called = 'latchkey_call_seconds_count{method="KeysService/VerifyKey",protocol="json",code="OK"}';
      expect(await metric(latchkey, called)).toBe(connections * 5);
      expect(await metric(latchkey, "latchkey_key_cache_total")).toBe(connections * 5);
      expect(await metric(latchkey, "latchkey_cached_keys")).toBe(workers);
    });
  }

  it("together let at most workers × limit of a local limit pass, and soon know of each other's", async () => {
    const limit = 50;
    const latchkey = shared();
    const callers = openConnections(latchkey.baseUrl, connections);
    const { key } = await latchkey.client.createKey({ apiId: "api", ratelimit: { limit, duration: 600_000 } });
    const answers = await crowd(callers, key, sized(8, 40));
    await expectAllServe(latchkey);
    const passed = answers.filter(({ valid }) => valid).length;
    expect(passed).toBeGreaterThanOrEqual(limit);
    expect(passed).toBeLessThanOrEqual(workers * limit);
    // Whichever of them is asked.
    await vi.waitFor(async () => {
      const later = await crowd(callers, key, 1);
      expect(new Set(later.map(({ code }) => code))).toEqual(new Set(["RATE_LIMITED"]));
    });
  });

  it("spend every use exactly once, and not one more", async () => {
    const [clients, uses] = sized([24, 200], [64, 1000]);
    const { baseUrl } = shared();
    const answers = await useUpTogether({ baseUrls: [baseUrl], rootKey: testRootKey, clients, uses });

    expect(problemsWithUse(answers, uses)).toEqual([]);
  });

  if (isDeep) return;

  it("never let more than a strict limit pass, and no less", async () => {
    const limit = 100;
    const latchkey = shared();
    const callers = openConnections(latchkey.baseUrl, connections);
    const ratelimit = { async: false, limit, duration: 60_000 };
    const { key } = await latchkey.client.createKey({ apiId: "api", ratelimit });
    const answers = await crowd(callers, key, 8);
    await expectAllServe(latchkey);

    expect(answers.filter(({ valid }) => valid)).toHaveLength(limit);
    const others = answers.filter(({ valid }) => !valid);
    expect(new Set(others.map(({ code }) => code))).toEqual(new Set(["RATE_LIMITED"]));
  });

  it("release what a refused use had taken from a strict limit", async () => {
    const { client, baseUrl } = shared();
    const callers = openConnections(baseUrl, connections);
    const ratelimit = { async: false, limit: 50, duration: 600_000 };
    const { key } = await client.createKey({ apiId: "api", remaining: 5, ratelimit });
    const answers = await crowd(callers, key, 4);
    expect(answers.filter(({ valid }) => valid)).toHaveLength(5);
    // A worker that gets no processor time returns its permits later than an explanation waits for them.
    await vi.waitFor(async () => {
      const { code, checks } = await client.explainKey({ key });
      const limit = checks.find(({ name }) => name === "limit");
      expect([code, limit?.ratelimit?.remaining]).toEqual(["USAGE_EXCEEDED", 45]);
    });
  });

  it("all refuse a deleted key after the answer to its deletion, and list it until then", async () => {
    const { client, baseUrl } = shared();
    const callers = openConnections(baseUrl, connections);
    for (let round = 0; round < 10; round++) {
      const { key, keyId } = await client.createKey({ apiId: "listed" });
      const before = await crowd(callers, key, 2);
      expect(before.every(({ valid }) => valid)).toBe(true);
      expect((await client.listKeys({ apiId: "listed" })).keys).toMatchObject([{ keyId }]);
      await client.deleteKey({ keyId });
      expect((await client.listKeys({ apiId: "listed" })).keys).toEqual([]);
      // A worker that gets no processor time for 100 ms follows a little later.
      await vi.waitFor(async () => {
        const after = await crowd(callers, key, 1);
        expect(after.filter(({ code }) => code !== "NOT_FOUND")).toEqual([]);
      });
    }
    await expectAllServe(shared());
  });
});

describe.each(anEngine)(`${workers} workers of one process, on $name`, (engine) => {
  it("answer everything that they were sent before they stop, and keep every use and window", async () => {
    // Long enough for a look at /readyz on a busy machine.
    const environment = { ...(await engine.environment()), PORT: "0", LATCHKEY_DRAIN_MS: "5000" };
    const stopped = await start(environment);
    const uses = 1_000_000;
    const { key } = await stopped.client.createKey({ apiId: "api", remaining: uses });
    const book: Book = { answered: 0, dropped: [], refused: 0 };
    const load = [
      ...Array.from({ length: 12 }, () => callOverHttp1(stopped.baseUrl, key, book)),
      ...Array.from({ length: 4 }, () => callOverGrpc(stopped.baseUrl, key, book)),
    ];
    await vi.waitFor(() => expectAllServe(stopped));
    await vi.waitFor(() => expect(book.answered).toBeGreaterThan(100));
    const ratelimit = { limit: 10, duration: 600_000 };
    const { key: limited } = await stopped.client.createKey({ apiId: "api", ratelimit });
    const limitedCallers = openConnections(stopped.baseUrl, 8);
    await vi.waitFor(async () => {
      const codes = (await crowd(limitedCallers, limited, 2)).map(({ code }) => code);
      expect(new Set(codes)).toEqual(new Set(["RATE_LIMITED"]));
    });
    stopped.kill("SIGTERM");
    await vi.waitFor(() => expect(stopped.stderr()).toContain('"msg":"stopping"'));
    await vi.waitFor(async () => expect((await fetch(`${stopped.baseUrl}/readyz`)).status).toBe(503));
    await Promise.all(load);

    expect(await stopped.exited).toBe(0);
    // What was wrong is in the log.
    expect(book.dropped, stopped.stderr()).toEqual([]);
    expect(book.answered).toBeGreaterThan(0);
    const again = await start(environment);
    const { remaining } = await again.client.verifyKey({ key });
    expect(uses - 1 - (remaining as number)).toBe(book.answered);
    const answers = await crowd(openConnections(again.baseUrl, 8), limited, 1);
    expect(new Set(answers.map(({ code }) => code))).toEqual(new Set(["RATE_LIMITED"]));
  });

  it("are replaced when they are killed: no use is lost or taken twice, and counters go on", async () => {
    const latchkey = await start(await engine.environment());
    const uses = 100_000;
    const { key } = await latchkey.client.createKey({ apiId: "api", remaining: uses });
    const seen: number[] = [];
    let isOver = false;
    /** Calls on connections of their own, so that some of them meet a worker that has just died. */
    const callWhileOthersDie = async () => {
      while (!isOver) {
        const body = JSON.stringify({ key });
        const headers = { "content-type": "application/json", connection: "close" };
        const signal = AbortSignal.timeout(60_000);
        const answer = await fetch(`${latchkey.baseUrl}/v1/keys.verifyKey`, { method: "POST", headers, body, signal })
          .then((response) => response.json() as Promise<{ valid?: boolean; remaining: number }>)
          .catch((error: Error) => error);
        // A connection that the worker had taken is closed. None is left hanging.
        if (answer instanceof Error) expect(answer.name).not.toBe("TimeoutError");
        else if (answer.valid) seen.push(answer.remaining);
      }
    };
    const calling = Array.from({ length: 8 }, callWhileOthersDie);
    for (let round = 0; round < sized(2, 10); round++) {
      const answered = seen.length;
      await vi.waitFor(() => expect(seen.length).toBeGreaterThan(answered + 50));
      await vi.waitFor(() => expect(pidsOfWorkers(latchkey).size).toBe(workers));
      const number = 1 + (round % workers);
      const victim = pidsOfWorkers(latchkey).get(number) as number;
      const counted = await metric(latchkey, 'latchkey_verifications_total{code="VALID"}');
      process.kill(victim, "SIGKILL");
      await vi.waitFor(() => {
        const pid = pidsOfWorkers(latchkey).get(number);
        expect(pid).toBeGreaterThan(0);
        expect(pid).not.toBe(victim);
      });
      expect(await metric(latchkey, 'latchkey_verifications_total{code="VALID"}')).toBeGreaterThanOrEqual(counted);
    }
    isOver = true;
    await Promise.all(calling);
    // Each use was given to one caller.
    expect(new Set(seen).size).toBe(seen.length);
    const { remaining = 0 } = await latchkey.client.verifyKey({ key });
    expect(remaining).toBeLessThan(Math.min(...seen));
    expect(uses - remaining).toBeGreaterThan(seen.length);
    expect(latchkey.stderr()).toContain("a worker has ended: another takes its place");
  });
});

describe(`${workers} workers of one process`, () => {
  it("end with it, however it ends", async () => {
    const latchkey = await start({ LATCHKEY_DATA_DIR: tempFolder() });
    const pids = [...pidsOfWorkers(latchkey).values()];
    expect(pids).toHaveLength(workers);
    // Only the main process decides when they stop.
    for (const pid of pids) process.kill(pid, "SIGTERM");
    await latchkey.client.createKey({ apiId: "api" });
    expect([...pidsOfWorkers(latchkey).values()]).toEqual(pids);

    latchkey.kill("SIGKILL");
    await vi.waitFor(() => {
      for (const pid of pids) expect(() => process.kill(pid, 0)).toThrow();
    });
  });

  it("leave a connection to others that one of them has not taken, and take turns", async () => {
    const latchkey = await start({ LATCHKEY_DATA_DIR: tempFolder() });
    const [stopped] = [...pidsOfWorkers(latchkey).values()] as [number, number];
    const { hostname: host, port } = new URL(latchkey.baseUrl);
    process.kill(stopped, "SIGSTOP");
    const ask = () =>
      new Promise<string>((resolve) => {
        const socket = net.connect({ host, port: Number(port) });
        socket.write("GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        let text = "";
        socket.on("data", (chunk) => {
          text += chunk;
        });
        socket.on("error", () => {});
        socket.on("close", () => resolve(text.slice(0, 15)));
      });
    // One of them waits for the worker that stands still; the other worker answers all others.
    const asked = Array.from({ length: 6 }, ask);
    const answered: string[] = [];
    for (const each of asked) void each.then((text) => answered.push(text));
    await vi.waitFor(() => expect(answered).toHaveLength(5));
    await delay(100);
    expect(answered).toHaveLength(5);
    process.kill(stopped, "SIGKILL");

    expect(new Set(await Promise.all(asked))).toEqual(new Set(["HTTP/1.1 200 OK"]));
  });
});

if (isDeep) {
  describe(`${workers} workers of one process`, () => {
    const shared = share(() => start({ LATCHKEY_DATA_DIR: tempFolder(), LATCHKEY_LOG_LEVEL: "debug" }));

    it("refuse a port in use, also one that another process serves by workers", async () => {
      const { baseUrl } = shared();
      const { port } = new URL(baseUrl);
      for (const LATCHKEY_WORKERS of ["1", "2"]) {
        const environment = {
          LATCHKEY_DATA_DIR: tempFolder(),
          LATCHKEY_WORKERS,
          LATCHKEY_INTERNAL_PORT: "0",
          PORT: port,
        };
        const { code, stderr } = await runLatchkey(["serve"], environment);
        const problem = `127.0.0.1:${port} is in use by another process; PORT and LATCHKEY_INTERNAL_PORT set others`;
        expect(code).toBe(1);
        expect(stderr.split("\n").slice(-3)).toEqual(["latchkey cannot start:", `  - ${problem}`, ""]);
      }
    });

    it("write log lines of the same form as ever, with their number", async () => {
      const latchkey = shared();
      const { key } = await latchkey.client.createKey({ apiId: "api" });
      const answers = await crowd(openConnections(latchkey.baseUrl, connections), key, 1);

      await vi.waitFor(() => {
        const lines = latchkey.stderr().trim().split("\n");
        const calls = lines.map((line) => JSON.parse(line)).filter(({ method }) => method === "KeysService/VerifyKey");
        expect(calls.map(({ requestId }) => requestId).sort()).toEqual(
          answers.map(({ requestId }) => requestId).sort(),
        );
        expect(new Set(calls.map(({ worker }) => worker))).toEqual(new Set([1, 2]));
      });
      expect(latchkey.stderr().match(/"msg":"serving"/g)).toHaveLength(1);
    });
  });
}
