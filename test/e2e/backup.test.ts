import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, it } from "vitest";
import { claimDataFolder } from "../../src/store/sqlite/data-folder.ts";
import { builtProgram } from "../support/artefact.ts";
import { inFile } from "../support/copies.ts";
import { type LatchkeyProcess, runLatchkey, startLatchkey } from "../support/latchkey-process.ts";
import { rawClient } from "../support/raw-client.ts";
import { tempFolder } from "../support/temp-folder.ts";
import { runOnTerminal } from "../support/terminal.ts";
import { testRootKey } from "../support/test-root-key.ts";

const uses = 1_000_000;

function serve(dataDir: string): Promise<LatchkeyProcess> {
  // However busy the machine is, every use is decided.
  const patient = { LATCHKEY_ROOT_KEY: testRootKey, LATCHKEY_USAGE_TIMEOUT_MS: "20000" };
  return startLatchkey({ LATCHKEY_DATA_DIR: dataDir, ...patient });
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

function epochOf(dataDir: string): unknown {
  return inFile(dataDir, (db) => db.prepare("SELECT epoch FROM change_feed").get()?.epoch);
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

    expect(await runLatchkey(["restore", file], { LATCHKEY_DATA_DIR: restoredDir })).toMatchObject({
      code: 0,
      stdout: `restored to ${restoredDir}\n`,
      stderr: expect.stringMatching(/^(pages: \d+ of \d+\n)+$/),
    });
    for (const name of ["latchkey.db", "latchkey.db-state"])
      expect(statSync(join(restoredDir, name)).mode & 0o777, name).toBe(0o600);
    expect(epochOf(restoredDir)).not.toBe(epochOf(dataDir));
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

  it("is not restored over data, into a folder that is served, or if it is not a sound backup", async () => {
    const [dataDir, folder] = [tempFolder(), tempFolder()];
    const latchkey = await serve(dataDir);
    await clientTo(latchkey).createKey({ apiId: "api", remaining: 2 });
    const file = join(folder, "backup.db");
    expect(await runLatchkey(["backup", file], { LATCHKEY_DATA_DIR: dataDir })).toMatchObject({ code: 0 });
    const made = (name: string, change: (path: string) => void) => {
      const path = join(folder, name);
      writeFileSync(path, readFileSync(file));
      change(path);
      return path;
    };
    const bytes = readFileSync(file);
    const foreign = (statement: string) => (path: string) => {
      const db = new DatabaseSync(path);
      db.exec(statement);
      db.close();
    };
    const damaged = made("damaged.db", (path) => writeFileSync(path, bytes.fill(0xff, 8192, bytes.length - 4096)));
    const orphans = made("orphans.db", foreign("PRAGMA foreign_keys = OFF; DELETE FROM apis"));
    const newer = made("newer.db", foreign("INSERT INTO schema_migrations VALUES ('9999-of-the-future', 0)"));
    const other = made("other.db", foreign("DROP TABLE schema_migrations"));
    const text = made("text.db", (path) => writeFileSync(path, "not a database, but a text that is long enough"));
    const log = join(tempFolder(), "log");
    mkdirSync(log);
    writeFileSync(join(log, "latchkey.db-wal"), "of another file");
    const empty = join(folder, "empty");
    const postgres = { LATCHKEY_DATA_DIR: empty, DATABASE_URL: "postgres://user:pass@127.0.0.1:1/latchkey" };
    const refusals: [string, Record<string, string>, string][] = [
      [file, { LATCHKEY_DATA_DIR: dataDir }, "latchkey.db exists: a backup is restored into a folder without data"],
      [file, { LATCHKEY_DATA_DIR: log }, "latchkey.db-wal exists"],
      [join(dataDir, "latchkey.db"), { LATCHKEY_DATA_DIR: empty }, "is a data file in use, not a backup"],
      [join(folder, "none"), { LATCHKEY_DATA_DIR: empty }, "there is no file"],
      [damaged, { LATCHKEY_DATA_DIR: empty }, "is not"],
      [orphans, { LATCHKEY_DATA_DIR: empty }, "is not sound (a row of keys belongs to nothing)"],
      [newer, { LATCHKEY_DATA_DIR: empty }, "made by a newer version of Latchkey (it has 9999-of-the-future)"],
      [other, { LATCHKEY_DATA_DIR: empty }, "is not a backup of Latchkey"],
      [text, { LATCHKEY_DATA_DIR: empty }, "is not a backup of Latchkey"],
      [file, postgres, "the data is in Postgres: restore it with pg_restore"],
    ];
    const runs = refusals.map(([path, environment]) => runLatchkey(["restore", path], environment));
    for (const [i, { code, stdout, stderr }] of (await Promise.all(runs)).entries()) {
      expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
      expect(stderr).toMatch(/^latchkey cannot restore:\n {2}- .*\n$/);
      expect(stderr).toContain(refusals[i]?.[2]);
    }
    expect(existsSync(empty)).toBe(false);
    expect(readdirSync(log)).toEqual(["latchkey.db-wal"]);

    // The file was lost, and the service still has the folder.
    const served = tempFolder();
    const lock = claimDataFolder(served);
    const inUse = await runLatchkey(["restore", file], { LATCHKEY_DATA_DIR: served });
    lock.release();
    expect(inUse.stderr).toContain("is in use by another process");
    expect(existsSync(join(served, "latchkey.db"))).toBe(false);
    const shown = await runOnTerminal(`'${process.execPath}' '${builtProgram()}' restore '${file}'`, {
      environment: { LATCHKEY_DATA_DIR: served, HOME: folder },
      folder,
    });
    expect(shown).toMatchObject({ code: 0, shown: expect.stringMatching(/pages +█{30} 100%.*\nrestored to/) });
  });
});
