import { once } from "node:events";
import { existsSync, writeFileSync } from "node:fs";
import net from "node:net";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { KeysClient } from "../../../src/sdk/index.ts";
import { isDeep, sized } from "../../support/deep.ts";
import { type LatchkeyProcess, startLatchkey } from "../../support/latchkey-process.ts";
import { rawClient } from "../../support/raw-client.ts";
import { tempFolder } from "../../support/temp-folder.ts";
import { createTestDatabase, hasPostgres } from "../../support/test-database.ts";
import { testRootKey } from "../../support/test-root-key.ts";

const limit = 20;
/** Longer than any test. */
const durationMs = 3_600_000;

const engines: [string, () => Promise<Record<string, string>>][] = [["the embedded store", async () => ({})]];
if (hasPostgres && isDeep) engines.push(["Postgres", async () => ({ DATABASE_URL: await createTestDatabase() })]);

/**
 * A port that stays free while no server listens on it. The system gives ports of another range to outgoing connections,
 * and one of those could be taken when the next replica starts.
 */
async function lastingPort(): Promise<number> {
  for (;;) {
    const port = 20_000 + Math.floor(Math.random() * 12_000);
    const server = net.createServer().listen(port, "127.0.0.1");
    const isFree = await once(server, "listening").then(
      () => true,
      () => false,
    );
    if (!isFree) continue;
    server.close();
    await once(server, "close");
    return port;
  }
}

/** One folder and one port: each replica that is started takes over from the one before. */
async function setUp(environment: Record<string, string>) {
  const port = await lastingPort();
  const folder = tempFolder();
  const own = { PORT: String(port), LATCHKEY_DATA_DIR: folder, LATCHKEY_ROOT_KEY: testRootKey, LATCHKEY_DRAIN_MS: "0" };
  const start = async () => {
    const replica = await startLatchkey({ ...environment, ...own });
    return { replica, client: rawClient({ baseUrl: replica.baseUrl, rootKey: testRootKey }).keys };
  };
  return { start, windowsFile: join(folder, `windows-${port}`) };
}

async function createLimitedKey(client: KeysClient): Promise<string> {
  return (await client.createKey({ apiId: "api", ratelimit: { limit, duration: durationMs } })).key;
}

async function use(client: KeysClient, key: string, times: number): Promise<{ passed: number; reset: number }> {
  let passed = 0;
  let reset = 0;
  for (let i = 0; i < times; i++) {
    const { valid, code, ratelimit } = await client.verifyKey({ key });
    expect(code).toBe(valid ? "VALID" : "RATE_LIMITED");
    if (valid) passed++;
    reset = ratelimit?.reset ?? 0;
  }
  return { passed, reset };
}

async function end(replica: LatchkeyProcess, signal: "SIGTERM" | "SIGKILL"): Promise<void> {
  replica.kill(signal);
  expect(await replica.exited).toBe(signal === "SIGTERM" ? 0 : "SIGKILL");
}

describe.each(engines)("a replica without Redis, on %s, that starts again", (_, environmentOf) => {
  it("continues the windows that were open when it was told to stop, and lets one more limit pass after it was killed", async () => {
    const { start, windowsFile } = await setUp(await environmentOf());
    const before = await start();
    const key = await createLimitedKey(before.client);
    const first = await use(before.client, key, 8);
    expect(first.passed).toBe(8);
    await end(before.replica, "SIGTERM");
    expect(existsSync(windowsFile)).toBe(true);

    const after = await start();
    const second = await use(after.client, key, 2 * limit);
    expect(second.passed).toBe(limit - 8);
    expect(Math.abs(second.reset - first.reset)).toBeLessThanOrEqual(sized(60_000, 1000));
    // The file was removed, so that no start uses it a second time.
    expect(existsSync(windowsFile)).toBe(false);

    await end(after.replica, "SIGKILL");
    // One more limit passes after a kill, and no more: which also shows that the windows above were saved ones.
    const afterKill = await start();
    expect((await use(afterKill.client, key, 2 * limit)).passed).toBe(limit);
  });
});

describe("a replica that finds windows it cannot read", () => {
  const head = (version: number) => JSON.stringify({ version, replica: "r", savedAtMs: Date.now() });
  const damaged: [string, string][] = [
    ["nothing", ""],
    ["half a line", `${head(1)}\n{"keyId":"key_`],
    ["another version", head(2)],
  ];

  it("says so and starts without them", async () => {
    const { start, windowsFile } = await setUp({});
    const first = await start();
    const key = await createLimitedKey(first.client);
    await use(first.client, key, 8);
    await end(first.replica, "SIGTERM");
    for (const [what, text] of damaged.slice(sized(1, 0), sized(2, 3))) {
      writeFileSync(windowsFile, text);
      const { replica, client } = await start();
      expect(replica.stderr(), what).toContain("the saved rate-limit windows could not be read");
      expect((await use(client, key, 3)).passed, what).toBe(3);
      await end(replica, "SIGKILL");
    }
  });
});
