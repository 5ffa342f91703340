import { execFileSync } from "node:child_process";
import { statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { compareWithDisk } from "../../src/store/sqlite/compare-with-disk.ts";
import { startLatchkey } from "../support/latchkey-process.ts";
import { rawClient } from "../support/raw-client.ts";
import { tempFolder } from "../support/temp-folder.ts";
import { testRootKey } from "../support/test-root-key.ts";

/** Whether a file of the tests can be read past the system's cache. */
function canCompare(): boolean {
  const file = join(tempFolder(), "file");
  writeFileSync(file, "data");
  return compareWithDisk(file) === "same";
}

describe("a data file that cannot be written", () => {
  it("is an outage until it was compared with the disk; then it is written again, and nothing is lost", async () => {
    const dataDir = tempFolder();
    const environment = { LATCHKEY_DATA_DIR: dataDir, LATCHKEY_ROOT_KEY: testRootKey, LATCHKEY_DRAIN_MS: "0" };
    const latchkey = await startLatchkey(environment);
    const { keys } = rawClient({ ...latchkey, rootKey: testRootKey });
    const created = [await keys.createKey({ apiId: "api", remaining: 5 })];
    const allowBytes = (bytes: number | "unlimited") =>
      execFileSync("prlimit", ["--pid", String(latchkey.pid), `--fsize=${bytes}:unlimited`]);
    // Writes beyond this length are errors, which are none of a full disk.
    allowBytes(statSync(join(dataDir, "latchkey.db-wal")).size);
    await expect(keys.createKey({ apiId: "api" })).rejects.toMatchObject({ status: 503 });
    const said = (text: string) => vi.waitFor(() => expect(latchkey.stderr()).toContain(text), { timeout: 60_000 });
    await said("the data file could not be written");
    await said("Take `latchkey backup FILE` to another disk before you stop the service");
    allowBytes("unlimited");
    if (!canCompare()) {
      await said("its file system cannot be read past the cache");
      expect((await fetch(`${latchkey.baseUrl}/readyz`)).status).toBe(503);
      return;
    }
    await said("the data file was checked and is sound");
    await vi.waitFor(async () => expect((await fetch(`${latchkey.baseUrl}/readyz`)).status).toBe(200));
    created.push(await keys.createKey({ apiId: "api", remaining: 5 }));
    for (const { key } of created) expect(await keys.verifyKey({ key })).toMatchObject({ valid: true, remaining: 4 });
  });
});
