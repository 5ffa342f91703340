import { execFileSync, spawnSync } from "node:child_process";
import { closeSync, fsyncSync, mkdirSync, openSync, rmSync, truncateSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it, vi } from "vitest";
import { sha256 } from "../../src/ambient/crypto.ts";
import { runLatchkey, startLatchkey } from "../support/latchkey-process.ts";
import { rawClient } from "../support/raw-client.ts";
import { tempFolder } from "../support/temp-folder.ts";
import { atTestEnd } from "../support/test-end.ts";
import { testRootKey } from "../support/test-root-key.ts";

const mebibyte = 2 ** 20;
const maxMemory = 64 * mebibyte;

function run(command: string, ...args: string[]): string {
  return execFileSync(command, args, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
}

const mayMakeVolumes =
  process.getuid?.() === 0 &&
  ["losetup -f", "mkfs.ext4 -V", "unshare -m true"].every((line) => spawnSync("sh", ["-c", line]).status === 0);

/**
 * A volume that promises more room than there is, as thin provisioning does: ext4 on a file that has holes, in a small memory
 * file system. When that is full, writes to the volume are accepted, and fail on their way to the disk.
 */
function thinVolume() {
  const folder = tempFolder();
  const [memory, path] = [join(folder, "memory"), join(folder, "volume")];
  for (const each of [memory, path]) mkdirSync(each);
  const undo: (() => void)[] = [];
  atTestEnd(() => {
    for (const step of undo.reverse()) spawnUntilDone(step);
  });
  run("mount", "-t", "tmpfs", "-o", `size=${maxMemory}`, "none", memory);
  undo.push(() => run("umount", memory));
  const [disk, filler] = [join(memory, "disk"), join(memory, "filler")];
  writeFileSync(disk, "");
  truncateSync(disk, 4 * maxMemory);
  run("mkfs.ext4", "-q", "-F", "-b", "4096", disk);
  const device = run("losetup", "-f", "--show", disk);
  undo.push(() => run("losetup", "-d", device));
  run("mount", device, path);
  undo.push(() => run("umount", path));
  fillJournal(join(path, "journal"));
  return {
    path,
    /** Leaves so much room for the volume. */
    leave(bytes: number) {
      const [free] = run("df", "--output=avail", "-B1", memory).split("\n").slice(-1);
      writeFileSync(filler, Buffer.alloc(Number(free) - bytes));
    },
    makeRoom: () => rmSync(filler),
    /** What is only in the system's cache is gone then. */
    remount() {
      run("umount", path);
      run("mount", device, path);
    },
  };
}

/** A folder can be busy for a moment after a process in it has ended. */
function spawnUntilDone(step: () => void): void {
  for (let attempts = 0; attempts < 50; attempts++) {
    try {
      step();
      return;
    } catch {
      spawnSync("sleep", ["0.1"]);
    }
  }
}

/** The journal of the file system takes its room now: without it, the volume would become read-only instead. */
function fillJournal(file: string): void {
  const fd = openSync(file, "w");
  for (let i = 0; i < 2500; i++) {
    writeSync(fd, "x".repeat(100));
    fsyncSync(fd);
  }
  closeSync(fd);
}

/** How many are not in the file, or why it cannot be read. */
function lostOf(file: string, digests: readonly string[]): number | string {
  const db = new DatabaseSync(file, { readOnly: true });
  try {
    const find = db.prepare("SELECT 1 FROM keys WHERE digest = ?");
    return digests.filter((digest) => find.get(digest) === undefined).length;
  } catch (error) {
    return (error as Error).message;
  } finally {
    db.close();
  }
}

describe.runIf(mayMakeVolumes)("a volume that loses writes", () => {
  it("has nothing acknowledged that a backup taken meanwhile has not, and nothing on it is served again", async () => {
    const volume = thinVolume();
    const dataDir = join(volume.path, "data");
    const environment = { LATCHKEY_DATA_DIR: dataDir, LATCHKEY_ROOT_KEY: testRootKey, LATCHKEY_DRAIN_MS: "0" };
    const latchkey = await startLatchkey(environment);
    const { keys } = rawClient({ ...latchkey, rootKey: testRootKey });
    volume.leave(20 * mebibyte);

    const acknowledged: string[] = [];
    let isOver = false;
    const meta = { filler: "x".repeat(1000) };
    const callers = Array.from({ length: 8 }, async () => {
      while (!isOver) {
        const created = await keys.createKey({ apiId: "api", meta }).catch(() => delay(20));
        if (created) acknowledged.push(created.key);
      }
    });
    await vi.waitFor(() => expect(latchkey.stderr()).toMatch(/data file could not be (read or )?written/), {
      timeout: 120_000,
    });
    // What was answered before the failure has arrived by then.
    await delay(1000);
    const before = acknowledged.length;
    // The volume is in order again, as far as anyone can see.
    volume.makeRoom();
    await vi.waitFor(() => expect(latchkey.stderr()).toMatch(/is not on the disk|was checked and is sound/), {
      timeout: 120_000,
    });
    await delay(3000);
    isOver = true;
    await Promise.all(callers);
    expect(acknowledged.length - before, "acknowledged after the failure").toBe(0);
    expect(latchkey.stderr()).toContain("Take `latchkey backup FILE` to another disk before you stop");
    expect((await fetch(`${latchkey.baseUrl}/readyz`)).status).toBe(503);

    const backup = join(tempFolder(), "backup.db");
    expect(await runLatchkey(["backup", backup], environment)).toMatchObject({ code: 0 });
    const digests = acknowledged.map(sha256);
    expect(digests.length).toBeGreaterThan(300);
    expect(lostOf(backup, digests)).toBe(0);

    // The page cache outlives the process: a start finds out too.
    latchkey.kill("SIGTERM");
    expect(await latchkey.exited).toBe(0);
    const again = await startLatchkey(environment);
    await vi.waitFor(() => expect(again.stderr()).toContain("is not on the disk"), { timeout: 60_000 });
    await expect(rawClient(again).keys.verifyKey({ key: String(acknowledged[0]) })).rejects.toMatchObject({
      status: 503,
    });
    again.kill("SIGTERM");
    expect(await again.exited).toBe(0);
  });

  it("control: SQLite by itself goes on there, and what it has committed is lost", () => {
    const volume = thinVolume();
    const file = join(volume.path, "plain.db");
    const db = new DatabaseSync(file);
    db.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL");
    db.exec("CREATE TABLE keys (digest TEXT PRIMARY KEY, filler TEXT) WITHOUT ROWID");
    const insert = db.prepare("INSERT INTO keys VALUES (?, ?)");
    volume.leave(20 * mebibyte);
    const committed: string[] = [];
    let failures = 0;
    for (let i = 0, after = 0; after < 3000; i++) {
      const digest = sha256(String(i));
      try {
        insert.run(digest, "x".repeat(1000));
        committed.push(digest);
        if (failures > 0) after++;
      } catch {
        if (failures++ === 0) volume.makeRoom();
      }
    }
    db.close();
    volume.remount();
    expect(failures).toBeGreaterThan(0);
    expect(lostOf(file, committed)).not.toBe(0);
  });
});
