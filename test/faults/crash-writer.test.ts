import { once } from "node:events";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { Worker } from "node:worker_threads";
import { describe, expect, it, vi } from "vitest";
import { startTestServer } from "../support/in-process-server.ts";
import { startLatchkey } from "../support/latchkey-process.ts";
import { rawClient } from "../support/raw-client.ts";
import { readMetric } from "../support/read-metric.ts";
import { tempFolder } from "../support/temp-folder.ts";
import { testRootKey } from "../support/test-root-key.ts";

/** Lets a signal end the one worker thread that the service has: its writer. */
const killWriterOnSignal = `process.on("worker", (writer) => process.on("SIGUSR2", () => writer.terminate()))`;

describe("the death of the writer thread", () => {
  it("ends the process with an error, and a restart goes on where it was", async () => {
    const environment = { LATCHKEY_DATA_DIR: tempFolder(), LATCHKEY_ROOT_KEY: testRootKey };
    const preload = `--import=data:text/javascript,${encodeURIComponent(killWriterOnSignal)}`;
    const first = await startLatchkey({ ...environment, NODE_OPTIONS: preload });
    const client = rawClient({ baseUrl: first.baseUrl, rootKey: testRootKey }).keys;
    const { key } = await client.createKey({ apiId: "api", remaining: 10 });
    expect(await client.verifyKey({ key })).toMatchObject({ valid: true, remaining: 9 });

    first.kill("SIGUSR2");
    expect(await first.exited).toBe(1);
    expect(first.stderr()).toContain("the process cannot go on");

    const second = await startLatchkey(environment);
    const again = rawClient({ baseUrl: second.baseUrl, rootKey: testRootKey }).keys;
    expect(await again.verifyKey({ key })).toMatchObject({ valid: true, remaining: 8 });
  });

  it("is told to callers as an outage, never as a verdict, and uses nothing up", async () => {
    const dataDir = tempFolder();
    const onFatal = vi.fn();
    const started = once(process, "worker") as Promise<[Worker]>;
    const server = await startTestServer({ settings: { dataDir }, onFatal });
    const client = rawClient(server).keys;
    const [writer] = await started;
    const { key } = await client.createKey({ apiId: "api", remaining: 10 });

    // While another process holds the file the writer waits, and so do all calls behind it.
    const holder = new DatabaseSync(join(dataDir, "latchkey.db"));
    holder.exec("BEGIN IMMEDIATE");
    const outcomes = Array.from({ length: 20 }, () => client.verifyKey({ key }).catch((error: unknown) => error));
    const created = client.createKey({ apiId: "api" }).catch((error: unknown) => error);
    await vi.waitFor(async () => expect(await readMetric(server.internalPort, "latchkey_key_cache_total")).toBe(20));
    const ended = writer.terminate();
    holder.close();
    await ended;

    const unavailable = { code: "SERVICE_UNAVAILABLE", status: 503, retryAfterMs: 1000 };
    for (const outcome of await Promise.all([...outcomes, created])) expect(outcome).toMatchObject(unavailable);
    expect(onFatal).toHaveBeenCalledOnce();
    await expect(client.verifyKey({ key })).rejects.toMatchObject(unavailable);

    await server.stop();
    const restarted = rawClient(await startTestServer({ settings: { dataDir } })).keys;
    expect(await restarted.verifyKey({ key })).toMatchObject({ valid: true, remaining: 9 });
  });
});
