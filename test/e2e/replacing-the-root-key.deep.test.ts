import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { expect, it, vi } from "vitest";
import { bash, readSteps, startStep } from "../support/documented-steps.ts";
import { runLatchkey, startLatchkey } from "../support/latchkey-process.ts";
import { rawClient } from "../support/raw-client.ts";
import { tempFolder } from "../support/temp-folder.ts";

it("follows docs/operations.md from the generated root key to one's own, with every call served", async () => {
  const folder = tempFolder();
  const read = (file: string) => readFileSync(join(folder, file), "utf8").trim();
  const [start, both, check, leaveOut] = readSteps("Replacing the root key").map(({ script }) => script);
  expect([start, both, check, leaveOut]).not.toContain(undefined);

  const latchkey = await startStep(folder, start as string, 0);
  const generated = read("data/root-key");
  const caller = callAllTheTime(latchkey.baseUrl, generated);
  const takenOver = (times: number) => {
    latchkey.kill("SIGHUP");
    return vi.waitFor(() => expect(latchkey.stderr().split("took over new settings")).toHaveLength(times + 1));
  };

  await caller.another();
  await bash(folder, both as string);
  await takenOver(1);
  await caller.another();
  const own = read("own-root-key");
  expect(await accepts(latchkey.baseUrl, own)).toBe(true);

  const onPort = (check as string).replace("http://127.0.0.1:8080", latchkey.baseUrl);
  expect(onPort).not.toBe(check);
  expect(JSON.parse(await bash(folder, onPort))).toHaveProperty("apis");
  caller.rootKey = own;
  await caller.another();

  await bash(folder, leaveOut as string);
  await takenOver(2);
  expect([await accepts(latchkey.baseUrl, generated), await accepts(latchkey.baseUrl, own)]).toEqual([false, true]);
  await caller.another();
  expect(await caller.stop()).toEqual([]);
  expect(existsSync(join(folder, "data/root-key"))).toBe(false);
  latchkey.kill("SIGTERM");
  expect(await latchkey.exited).toBe(0);

  // Unset, the old one does not come back: the start is refused, and says what to choose.
  const unset = { LATCHKEY_DATA_DIR: join(folder, "data"), PORT: "0", LATCHKEY_INTERNAL_PORT: "0" };
  const refused = await runLatchkey(["serve"], unset);
  expect(refused.code).toBe(1);
  expect(refused.stderr).toMatch(/Set LATCHKEY_ROOT_KEY again, or set LATCHKEY_GENERATE_ROOT_KEY=1/);
  const again = await startLatchkey({ ...unset, LATCHKEY_GENERATE_ROOT_KEY: "1" });
  const newest = read("data/root-key");
  const accepted = [generated, own, newest].map((rootKey) => accepts(again.baseUrl, rootKey));
  expect(await Promise.all(accepted)).toEqual([false, false, true]);
});

it("keeps the last root key of the settings until a restart, and names what needs one", async () => {
  const folder = tempFolder();
  const file = join(folder, "latchkey.env");
  const own = "own-root-key-0123456789-0123456789";
  appendFileSync(file, `LATCHKEY_ROOT_KEY=${own}\nLATCHKEY_DRAIN_MS=0\n`);
  const latchkey = await startLatchkey({ LATCHKEY_SETTINGS_FILE: file, LATCHKEY_DATA_DIR: join(folder, "data") });
  await bash(folder, "echo LATCHKEY_WORKERS=2 > latchkey.env");
  latchkey.kill("SIGHUP");
  await vi.waitFor(() => expect(latchkey.stderr()).toContain("some new settings need a restart"));
  expect(latchkey.stderr()).toMatch(/"settings":"LATCHKEY_WORKERS, LATCHKEY_ROOT_KEY"/);
  expect(latchkey.stderr()).not.toContain(own);
  expect(await accepts(latchkey.baseUrl, own)).toBe(true);
});

async function accepts(baseUrl: string, rootKey: string): Promise<boolean> {
  return rawClient({ baseUrl, rootKey })
    .apis.listApis({})
    .then(
      () => true,
      (error: { code: string }) => {
        if (error.code !== "UNAUTHORIZED") throw error;
        return false;
      },
    );
}

/** A caller that manages with its root key, again and again, and counts what fails. */
function callAllTheTime(baseUrl: string, rootKey: string) {
  const failures: string[] = [];
  let isStopping = false;
  let calls = 0;
  const caller = { rootKey, another, stop };
  const running = (async () => {
    while (!isStopping) {
      const shown = caller.rootKey;
      if (await accepts(baseUrl, shown)) calls++;
      // Given the new one meanwhile, it would not have shown the old one.
      else if (shown === caller.rootKey) failures.push("refused");
      await delay(20);
    }
  })();
  /** A call that begins from now on is served. */
  async function another(): Promise<void> {
    const before = calls;
    await vi.waitFor(() => expect(calls).toBeGreaterThan(before + 1));
  }
  async function stop(): Promise<string[]> {
    isStopping = true;
    await running;
    return failures;
  }
  return caller;
}
