import { copyFileSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type LatchkeyProcess, runLatchkey, startLatchkey } from "../support/latchkey-process.ts";
import { rawClient } from "../support/raw-client.ts";
import { tempFolder } from "../support/temp-folder.ts";
import { testRootKey } from "../support/test-root-key.ts";

const uses = 1_000_000;

function serve(dataDir: string): Promise<LatchkeyProcess> {
  return startLatchkey({ LATCHKEY_DATA_DIR: dataDir, LATCHKEY_ROOT_KEY: testRootKey });
}

function clientTo({ baseUrl }: LatchkeyProcess) {
  return rawClient({ baseUrl, rootKey: testRootKey }).keys;
}

/** Why there is no backup. */
async function refusalOf(dataDir: string, file: string): Promise<string> {
  const { code, stdout, stderr } = await runLatchkey(["backup", file], { LATCHKEY_DATA_DIR: dataDir });
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  expect(stderr).toMatch(/^latchkey cannot back up:\n {2}- .*\n$/);
  return stderr;
}

// Of the embedded store only: Postgres has tools of its own for it.
describe("a backup", () => {
  it("taken under load serves the same keys, with counters as of one moment", async () => {
    const folder = tempFolder();
    const [dataDir, restoredDir, file] = ["data", "restored", "backup.db"].map((name) => join(folder, name)) as [
      string,
      string,
      string,
    ];
    const client = clientTo(await serve(dataDir));
    const counted = await client.createKey({ apiId: "api", remaining: uses });
    const others = await Promise.all(
      Array.from({ length: 20 }, (_, i) => client.createKey({ apiId: "api", meta: { i } })),
    );
    const deleted = await client.createKey({ apiId: "api" });
    await client.deleteKey({ keyId: deleted.keyId });

    let [asked, acknowledged, done] = [0, 0, false];
    const callers = Array.from({ length: 8 }, async () => {
      while (!done) {
        asked++;
        await client.verifyKey({ key: counted.key });
        acknowledged++;
      }
    });
    while (acknowledged < 100) await client.verifyKey({ key: deleted.key });
    const atLeast = acknowledged;
    const { code, stdout, stderr } = await runLatchkey(["backup", file], { LATCHKEY_DATA_DIR: dataDir });
    const atMost = asked;
    done = true;
    await Promise.all(callers);
    expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: `backed up to ${file}\n`, stderr: "" });
    expect(atMost).toBeGreaterThan(atLeast);
    for (const path of [file, join(dataDir, "latchkey.db")]) expect(statSync(path).mode & 0o777, path).toBe(0o600);

    mkdirSync(restoredDir);
    copyFileSync(file, join(restoredDir, "latchkey.db"));
    const restored = clientTo(await serve(restoredDir));
    const { remaining } = await restored.verifyKey({ key: counted.key });
    const used = uses - 1 - (remaining as number);
    expect(used).toBeGreaterThanOrEqual(atLeast);
    expect(used).toBeLessThanOrEqual(atMost);
    for (const [i, { keyId, key }] of others.entries()) {
      expect(await restored.verifyKey({ key })).toMatchObject({ valid: true, keyId, meta: { i } });
    }
    expect(await restored.verifyKey({ key: deleted.key })).toMatchObject({ code: "NOT_FOUND" });
    expect(await restored.createKey({ apiId: "api" })).toHaveProperty("key");
  });

  it("can be taken while nothing serves the folder, too", async () => {
    const dataDir = tempFolder();
    const latchkey = await serve(dataDir);
    const { key } = await clientTo(latchkey).createKey({ apiId: "api", remaining: 2 });
    latchkey.kill("SIGKILL");
    await latchkey.exited;
    const restoredDir = tempFolder();

    const environment = { LATCHKEY_DATA_DIR: dataDir };
    expect(await runLatchkey(["backup", join(restoredDir, "latchkey.db")], environment)).toMatchObject({ code: 0 });
    expect(await clientTo(await serve(restoredDir)).verifyKey({ key })).toMatchObject({ valid: true, remaining: 1 });
  });

  it("overwrites nothing, and is not made of nothing", async () => {
    const [dataDir, empty] = [tempFolder(), tempFolder()];
    await serve(dataDir);
    const existing = join(empty, "precious");
    writeFileSync(existing, "precious");

    expect(await refusalOf(dataDir, existing)).toContain(`${existing} exists already`);
    expect(readFileSync(existing, "utf8")).toBe("precious");
    expect(await refusalOf(dataDir, join(empty, "no-such-folder", "file"))).toContain("cannot be read or written");
    expect(await refusalOf(join(empty, "none"), join(empty, "new"))).toContain("there is no Latchkey data in");
    expect(existsSync(join(empty, "new"))).toBe(false);
    expect(existsSync(join(empty, "none"))).toBe(false);
  });

  it("is not taken of a left-over folder when the data is in Postgres", async () => {
    const dataDir = tempFolder();
    const latchkey = await serve(dataDir);
    latchkey.kill("SIGKILL");
    await latchkey.exited;
    const file = join(tempFolder(), "backup.db");

    const environment = { LATCHKEY_DATA_DIR: dataDir, DATABASE_URL: "postgres://user:pass@127.0.0.1:1/latchkey" };
    expect(await runLatchkey(["backup", file], environment)).toEqual({
      code: 1,
      stdout: "",
      stderr: "latchkey cannot back up:\n  - the data is in Postgres: copy it with pg_dump\n",
    });
    expect(existsSync(file)).toBe(false);
  });
});
