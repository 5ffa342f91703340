import type { Worker } from "node:worker_threads";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import type { VerifyKeyResponse } from "../../src/sdk/index.ts";
import { isDeep, sized } from "../support/deep.ts";
import { engines } from "../support/engines.ts";
import { problemsWithUse, useUpTogether } from "../support/exact-usage.ts";
import { startTestServer } from "../support/in-process-server.ts";
import { runLatchkey } from "../support/latchkey-process.ts";
import { crowd, openConnections, type VerifyOverOne } from "../support/open-connections.ts";
import { type Book, callOverGrpc, callOverHttp1 } from "../support/persistent-callers.ts";
import { tempFolder } from "../support/temp-folder.ts";
import { testRootKey } from "../support/test-root-key.ts";
import { share } from "./share.ts";
import { connections, expectAllServe, metric, start, threads } from "./start-threads.ts";

function countdown(answers: readonly VerifyKeyResponse[]): (number | undefined)[] {
  const passed = answers.filter(({ valid }) => valid);
  return passed.map(({ ratelimit }) => ratelimit?.remaining).sort((a = 0, b = 0) => b - a);
}

function fromBelow(limit: number): number[] {
  return Array.from({ length: limit }, (_, i) => limit - 1 - i);
}

/** In every window exactly the limit passes, each answer counting down by one; a window that ended early lets fewer pass. */
function expectExactWindows(answers: readonly VerifyKeyResponse[], { limit, duration }: typeof ratelimitOfLoad): void {
  expect(new Set(answers.map(({ code }) => code))).toEqual(new Set(["VALID", "RATE_LIMITED"]));
  for (const [, own] of Map.groupBy(answers, resetOf)) {
    const passed = countdown(own);
    expect(passed).toEqual(fromBelow(limit).slice(0, passed.length));
    if (own.some(isRefused)) expect(passed).toHaveLength(limit);
  }
  // One after the other: threads that counted by themselves would have windows side by side.
  const resets = [...new Set(answers.map(resetOf))].sort((a, b) => a - b);
  for (let i = 1; i < resets.length; i++) {
    expect((resets[i] as number) - (resets[i - 1] as number)).toBeGreaterThanOrEqual(duration - 1);
  }
}

/** All callers ask on until a window was full. */
async function crowdUntilRefused(callers: readonly VerifyOverOne[], key: string): Promise<VerifyKeyResponse[]> {
  const answers: VerifyKeyResponse[] = [];
  while (!answers.some(isRefused)) answers.push(...(await crowd(callers, key, 1)));
  return answers;
}

const ratelimitOfLoad = { limit: 100, duration: 1000 };
const resetOf = ({ ratelimit }: VerifyKeyResponse) => ratelimit?.reset ?? 0;
const isRefused = ({ code }: VerifyKeyResponse) => code === "RATE_LIMITED";

/** The engine is of no matter to some of these: `npm test` has them on one. */
const anEngine = sized(engines.slice(0, 1), engines);

describe.each(anEngine)(`${threads} threads of one process, on $name`, (engine) => {
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
      expect(await metric(latchkey, "latchkey_cached_keys")).toBe(threads);
      // Once for the process, and not once for each thread.
      const startedS = await metric(latchkey, "process_start_time_seconds");
      expect(Math.abs(startedS - Date.now() / 1000)).toBeLessThan(600);
    });
  }

  it("let exactly a local limit pass in every window, each answer counting down by one", async () => {
    const windows = sized(2, 6);
    const latchkey = shared();
    const callers = openConnections(latchkey.baseUrl, connections);
    const { key } = await latchkey.client.createKey({ apiId: "api", ratelimit: ratelimitOfLoad });
    const answers: VerifyKeyResponse[] = [];
    const resets = new Set<number>();
    const ask = async (verify: VerifyOverOne) => {
      // On a busy machine, until a window is full.
      while (resets.size <= windows || !answers.some(isRefused)) {
        const answer = await verify(key);
        answers.push(answer);
        resets.add(resetOf(answer));
      }
    };
    await Promise.all(callers.map(ask));
    await expectAllServe(latchkey);
    expectExactWindows(answers, ratelimitOfLoad);
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

  it("release what a refused use had taken from a local or strict limit", async () => {
    const { client, baseUrl } = shared();
    const callers = openConnections(baseUrl, connections);
    for (const async of [true, false]) {
      const ratelimit = { async, limit: 50, duration: 60_000 };
      const { key } = await client.createKey({ apiId: "api", remaining: 5, ratelimit });
      const answers = await crowd(callers, key, 4);
      expect(answers.filter(({ valid }) => valid)).toHaveLength(5);
      const last = await client.verifyKey({ key });
      expect(last).toMatchObject({ code: "USAGE_EXCEEDED", remaining: 0 });
      if (async) expect(last.ratelimit?.remaining).toBe(45);
      const { code, checks } = await client.explainKey({ key });
      const limit = checks.find(({ name }) => name === "limit");
      expect([code, limit?.ratelimit?.remaining]).toEqual(["USAGE_EXCEEDED", 45]);
    }
  });

  it("all refuse a deleted key from the answer to its deletion on, and list it until then", async () => {
    const { client, baseUrl } = shared();
    const callers = openConnections(baseUrl, connections);
    for (let round = 0; round < 10; round++) {
      const { key, keyId } = await client.createKey({ apiId: "listed" });
      const before = await crowd(callers, key, 2);
      expect(before.every(({ valid }) => valid)).toBe(true);
      expect((await client.listKeys({ apiId: "listed" })).keys).toMatchObject([{ keyId }]);
      await client.deleteKey({ keyId });
      expect((await client.listKeys({ apiId: "listed" })).keys).toEqual([]);
      const after = await crowd(callers, key, 1);
      expect(after.filter(({ code }) => code !== "NOT_FOUND")).toEqual([]);
    }
    await expectAllServe(shared());
  });
});

describe.each(anEngine)(`${threads} threads of one process, on $name`, (engine) => {
  it("answer everything that they were sent before they stop, and keep every use and window", async () => {
    const environment = { ...(await engine.environment()), PORT: "0", LATCHKEY_DRAIN_MS: "2000" };
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
    const { key: limited } = await stopped.client.createKey({
      apiId: "api",
      ratelimit: { limit: 10, duration: 60_000 },
    });
    await crowd(openConnections(stopped.baseUrl, 7), limited, 1);
    stopped.kill("SIGTERM");
    await vi.waitFor(() => expect(stopped.stderr()).toContain('"msg":"stopping"'));
    await vi.waitFor(async () => expect((await fetch(`${stopped.baseUrl}/readyz`)).status).toBe(503));
    await Promise.all(load);

    expect(await stopped.exited).toBe(0);
    expect(book.dropped).toEqual([]);
    expect(book.answered).toBeGreaterThan(0);
    const again = await start(environment);
    const { remaining } = await again.client.verifyKey({ key });
    expect(uses - 1 - (remaining as number)).toBe(book.answered);
    expect(await again.client.verifyKey({ key: limited })).toMatchObject({ ratelimit: { remaining: 2 } });
  });

  if (!isDeep) return;
  it("give every window of many keys to one key only, while windows come and go", async () => {
    const latchkey = await start({ ...(await engine.environment()), LATCHKEY_WINDOWS_MAX: "3" });
    const callers = openConnections(latchkey.baseUrl, connections);
    const ratelimit = { limit: 40, duration: 1000 };
    for (let round = 0; round < 2; round++) {
      const created = await Promise.all([1, 2, 3].map(() => latchkey.client.createKey({ apiId: "api", ratelimit })));
      const answers = await Promise.all(created.map(({ key }) => crowdUntilRefused(callers, key)));
      for (const each of answers) expectExactWindows(each, ratelimit);
      await vi.waitFor(async () => expect(await metric(latchkey, "latchkey_rate_limit_windows")).toBe(0));
    }
  });
});

if (isDeep) {
  describe(`${threads} threads of one process`, () => {
    const shared = share(() => start({ LATCHKEY_DATA_DIR: tempFolder(), LATCHKEY_LOG_LEVEL: "debug" }));

    it("refuse a port in use, also one that another process shares between its threads", async () => {
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
        expect(new Set(calls.map(({ thread }) => thread))).toEqual(new Set([1, 2]));
      });
      expect(latchkey.stderr().match(/"msg":"serving"/g)).toHaveLength(1);
    });

    it("end together when one of them dies", async () => {
      const started: Worker[] = [];
      const note = (worker: Worker) => void started.push(worker);
      process.on("worker", note);
      onTestFinished(() => void process.off("worker", note));
      const fatal: unknown[] = [];
      await startTestServer({ settings: { workers: threads }, onFatal: (cause) => void fatal.push(cause) });
      expect(fatal).toEqual([]);

      await started.at(-1)?.terminate();

      await vi.waitFor(() => expect(fatal).toMatchObject([{ message: "serving thread 2 exited with 1" }]));
    });
  });
}
