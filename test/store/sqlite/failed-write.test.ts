import { cpSync, readFileSync, statSync, truncateSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { createLog } from "../../../src/ambient/log.ts";
import { Unavailable } from "../../../src/domain/unavailable.ts";
import { migrateUp } from "../../../src/store/sql/migrate.ts";
import type { CheckResult } from "../../../src/store/sqlite/check-data.ts";
import { noteFailedWrite, readDataFileState } from "../../../src/store/sqlite/clean-stop.ts";
import { compareWithDisk, isSame, type ReadAt } from "../../../src/store/sqlite/compare-with-disk.ts";
import { FileHealth } from "../../../src/store/sqlite/file-health.ts";
import { OpenFiles } from "../../../src/store/sqlite/open-files.ts";
import { openSqliteEngine, openSqliteStore } from "../../../src/store/sqlite/open-sqlite-store.ts";
import { sampleKey } from "../../contract/sample-keys.ts";
import { createKey } from "../../support/manage.ts";
import { tempFolder } from "../../support/temp-folder.ts";
import { readRows, tamper, testOptions } from "./open-test-engine.ts";

const pieceBytes = 2 ** 20;

/** The health of a file, with checks that end when the test says so. */
async function watched() {
  const checks: { end: (result: CheckResult) => void }[] = [];
  const logLines: string[] = [];
  const prepareCheck = () => {
    const { promise, resolve } = Promise.withResolvers<CheckResult>();
    return { begin: () => void checks.push({ end: resolve }), result: promise, stop: async () => {} };
  };
  const file = join(tempFolder(), "latchkey.db");
  const health = new FileHealth(file, { log: createLog("debug", (line) => logLines.push(line)), prepareCheck });
  health.watch(await OpenFiles.open([]));
  onTestFinished(() => health.stop().then(() => {}));
  const changes = vi.fn();
  health.onChange(changes);
  return { health, file, checks, changes, logText: () => logLines.join("") };
}

const soon = <Value>(read: () => Value, value: Value) =>
  vi.waitFor(() => expect(read()).toBe(value), { timeout: 60_000 });
const remedy = "Take `latchkey backup FILE` to another disk before you stop the service";

describe("a write to the data file that failed", () => {
  it("is a problem until a check has compared the file with the disk", async () => {
    const { health, file, checks, changes, logText } = await watched();
    health.failWrite(new Error("disk I/O error"));
    expect(health.problem).toBeInstanceOf(Unavailable);
    expect(changes).toHaveBeenCalledTimes(1);
    expect(logText()).toContain(remedy);
    expect(health.hasFailed, "the log stays as it is").toBe(true);
    expect(readFileSync(`${file}-state`, "utf8")).toContain("failed");
    checks[0]?.end({ outcome: "sound", isOnDisk: true });
    await soon(() => health.problem, undefined);
    expect(changes).toHaveBeenCalledTimes(2);
    expect(health.hasFailed).toBe(false);
    expect(readFileSync(`${file}-state`, "utf8")).not.toContain("failed");
    expect(logText()).toContain("the data file was checked and is sound");
  });

  it.each<[string, CheckResult, string]>([
    ["the disk has something else", { outcome: "unwritten", reason: "a page" }, remedy],
    ["the check has read the cache only", { outcome: "sound", isOnDisk: false }, remedy],
    ["the file is damaged", { outcome: "damaged", reason: "a page" }, "put a backup into an empty data folder"],
  ])("is one for good if %s", async (_, result, said) => {
    const { health, checks, changes, logText } = await watched();
    health.failWrite(new Error("disk I/O error"));
    checks[0]?.end(result);
    await vi.waitFor(() => expect(changes).toHaveBeenCalledTimes(2), { timeout: 60_000 });
    expect(health.problem).toBeInstanceOf(Unavailable);
    expect(logText().split("\n").at(-2)).toContain(said);
    expect(await health.stop(), "no clean stop").toBe(false);
  });

  it("stays one if the check had begun before it", async () => {
    const { health, checks, logText } = await watched();
    health.suspect(new Error("a page cannot be read"));
    health.failWrite(new Error("disk I/O error"));
    checks[0]?.end({ outcome: "sound", isOnDisk: true });
    await health.refresh();
    await new Promise(setImmediate);
    expect(health.problem).toBeInstanceOf(Unavailable);
    expect(logText()).not.toContain("is sound");
  });
});

describe("a store whose data file had a failed write", () => {
  it("is checked before it is used again, whatever its size", async () => {
    const { options, file } = testOptions();
    await (await openSqliteStore(options)).close();
    tamper(file, "CREATE TABLE filler AS SELECT zeroblob(9000000) AS bytes");
    noteFailedWrite(file, true);
    expect(readDataFileState(file).state).toBe("failed");
    const prepareCheck = vi.fn();
    const store = await openSqliteStore({ ...options, prepareCheck });
    expect(store.health).toMatchObject({ problem: undefined, doubt: undefined });
    expect(prepareCheck, "it would be made while the file is in use").not.toHaveBeenCalled();
    await store.close();
    expect(readDataFileState(file).state).toBe("clean");
  });

  it("leaves the log beside the file when it closes", async () => {
    const { options, clock, file } = testOptions();
    const engine = await openSqliteEngine(options);
    await migrateUp(engine, clock.nowMs());
    const { size } = statSync(`${file}-wal`);
    await engine.close({ leaveLog: true });
    expect(statSync(`${file}-wal`).size).toBe(size);
    expect(readRows(file, "SELECT count(*) > 0 AS isThere FROM schema_migrations")).toEqual([{ isThere: 1n }]);
  });
});

describe("the log of a data file", () => {
  it("is moved into the file while it is in use, and begun again", async () => {
    const { options, clock, file } = testOptions();
    const store = await openSqliteStore(options);
    onTestFinished(() => store.close());
    const meta = { filler: "x".repeat(1000) };
    for (let i = 0; i < 60; i++)
      await Promise.all(Array.from({ length: 50 }, () => createKey(store.management, sampleKey(clock, { meta }))));
    const [data, log] = [file, `${file}-wal`].map((path) => statSync(path).size) as [number, number];
    expect(data).toBeGreaterThan(2 * pieceBytes);
    expect(log).toBeLessThan(8 * pieceBytes);
  });
});

describe("a data file that became shorter", () => {
  it("is noticed while it is served, without any request, and is damaged", async () => {
    const { options, clock, file, logLines } = testOptions();
    const first = await openSqliteStore(options);
    await Promise.all(Array.from({ length: 100 }, () => createKey(first.management, sampleKey(clock))));
    await first.close();
    const store = await openSqliteStore(options);
    onTestFinished(() => store.close());
    await store.health?.refresh();
    truncateSync(file, statSync(file).size / 2);
    await vi.waitFor(() => expect(store.health?.problem).toBeInstanceOf(Unavailable), { timeout: 60_000 });
    expect(logLines.join("")).toMatch(/became shorter: it had \d+ bytes, and has \d+/);
    await vi.waitFor(() => expect(logLines.join("")).toContain("the data file is damaged"), { timeout: 60_000 });
  });
});

describe("a comparison with the disk", () => {
  const reads =
    (...contents: readonly Buffer[]): ReadAt =>
    (buffer, at) => {
      const content = contents.length > 1 ? (contents as Buffer[]).shift() : contents[0];
      return content?.copy(buffer, 0, at, at + buffer.length) ?? 0;
    };
  const bytes = (length: number, value = 1) => Buffer.alloc(length, value);

  it.each<[string, boolean, () => boolean]>([
    ["the same", true, () => isSame(reads(bytes(3 * pieceBytes)), reads(bytes(3 * pieceBytes)))],
    ["nothing on both", true, () => isSame(reads(bytes(0)), reads(bytes(0)))],
    ["other bytes at the end", false, () => isSame(reads(bytes(pieceBytes + 9)), reads(withLast(pieceBytes + 9)))],
    ["fewer bytes on the disk", false, () => isSame(reads(bytes(9)), reads(bytes(8)))],
    ["a page that is written meanwhile", true, () => isSame(reads(bytes(9), bytes(9, 2)), reads(bytes(9, 2)))],
  ])("finds %s: %s", (_, expected, compare) => expect(compare()).toBe(expected));

  function withLast(length: number): Buffer {
    const changed = bytes(length);
    changed[length - 1] = 2;
    return changed;
  }

  it("gives up on a file that never stands still", () => {
    let value = 0;
    const changing: ReadAt = (buffer) => buffer.fill(value++ % 251).length;
    expect(() => isSame(changing, changing)).toThrow("changes too often");
  });

  it("reads a data file with its log, or says that it cannot", async () => {
    const { options, clock, file } = testOptions();
    const store = await openSqliteStore(options);
    onTestFinished(() => store.close());
    await createKey(store.management, sampleKey(clock));
    // Not the open file itself: closing it would drop SQLite's locks.
    const copy = join(tempFolder(), "latchkey.db");
    for (const ending of ["", "-wal"]) cpSync(file + ending, copy + ending);
    expect(["same", "unsupported"]).toContain(compareWithDisk(copy));
    expect(compareWithDisk(join(copy, "none"))).toEqual({ failed: expect.stringContaining("ENOTDIR") });
  });
});
