import { cpSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { Unavailable } from "../../../src/domain/unavailable.ts";
import type { CheckResult } from "../../../src/store/sqlite/check-data.ts";
import { noteClosed, noteOpened, readDataFileState } from "../../../src/store/sqlite/clean-stop.ts";
import { DataFolderError } from "../../../src/store/sqlite/data-folder.ts";
import type { FileCheck } from "../../../src/store/sqlite/file-check.ts";
import { openSqliteStore, type SqliteStoreOptions } from "../../../src/store/sqlite/open-sqlite-store.ts";
import type { Store } from "../../../src/store/store.ts";
import { permitAsk, strict } from "../../contract/permit-asks.ts";
import { foundAs, sampleKey } from "../../contract/sample-keys.ts";
import { copyPage, damageEveryFourthPage, overwritePage } from "../../support/damage-file.ts";
import { createKey, deleteKey, setRateLimit } from "../../support/manage.ts";
import { ones } from "../../support/ones.ts";
import { tempFolder } from "../../support/temp-folder.ts";
import { readRows, tamper, testOptions } from "./open-test-engine.ts";

async function open(options: SqliteStoreOptions): Promise<Store> {
  const store = await openSqliteStore(options);
  onTestFinished(() => store.close());
  return store;
}

/** A copy of the files as a crash at this moment would leave them, in a separate folder. */
function crashImageOf(file: string): string {
  const folder = join(tempFolder(), "crashed");
  cpSync(dirname(file), folder, { recursive: true });
  return join(folder, "latchkey.db");
}

/** A check that ends when the test says so. */
function heldCheck() {
  let end: (result: CheckResult) => void = () => {};
  const result = new Promise<CheckResult>((resolve) => {
    end = resolve;
  });
  const check: FileCheck = { begin() {}, result, stop: async () => {} };
  return { prepareCheck: () => check, end };
}

describe("a data file after a crash, while it is being checked", () => {
  async function crashed() {
    const { options, clock, file } = testOptions();
    const before = await open(options);
    const counted = sampleKey(clock, { remaining: 5 });
    const limited = sampleKey(clock, { rateLimit: strict(10) });
    for (const key of [counted, limited]) await createKey(before.management, key);
    const image = crashImageOf(file);
    // Larger than the files that are checked before use.
    tamper(image, "CREATE TABLE filler AS SELECT zeroblob(9000000) AS bytes");
    const check = heldCheck();
    const store = await open({ ...options, file: image, prepareCheck: check.prepareCheck });
    return { store, check, counted, limited, clock };
  }

  it("serves what is found, and calls nothing missing until it is known to be sound", async () => {
    const { store, check, counted, limited, clock } = await crashed();
    const unknown = sampleKey(clock, { remaining: 5 });
    const list = { kind: "keys", apiId: counted.apiId, limit: 100 } as const;
    const settle = (keyId: string) => store.usageLanes[0]?.settle([{ subject: keyId, cost: 1, count: 1 }]);
    const exchange = (subject: string) =>
      store.permitLanes[0]?.exchange([{ subject, ...permitAsk({ waiting: ones(1) }) }]);

    expect(store.health?.problem).toBeUndefined();
    expect(await store.keys.findByDigest(counted.secretDigest)).toStrictEqual(foundAs(counted));
    expect(await settle(counted.id)).toMatchObject([{ outcome: "settled", remaining: 4 }]);
    expect(await exchange(limited.id)).toMatchObject([{ outcome: "settled" }]);
    await createKey(store.management, sampleKey(clock));

    await expect(store.keys.findByDigest(unknown.secretDigest)).rejects.toThrow(Unavailable);
    await expect(deleteKey(store.management, unknown.id)).rejects.toThrow(Unavailable);
    await expect(setRateLimit(store.management, unknown.id, undefined)).rejects.toThrow(Unavailable);
    await expect(store.rootKeys.presence(0), "or a root key would be generated").rejects.toThrow(Unavailable);
    await expect(store.rootKeys.findByDigest("unknown")).rejects.toThrow(Unavailable);
    await expect(store.management.read(list), "or a key that is not in it would look deleted").rejects.toThrow(
      Unavailable,
    );
    for (const kind of ["events", "rootKeys", "apis", "owners"] as const)
      await expect(store.management.read({ kind, limit: 1 }), kind).rejects.toThrow(Unavailable);
    expect(await settle(unknown.id)).toMatchObject([{ outcome: "failed" }]);
    expect(await exchange(unknown.id)).toMatchObject([{ outcome: "failed" }]);

    check.end({ outcome: "sound" });
    await vi.waitFor(async () => expect(await store.keys.findByDigest(unknown.secretDigest)).toBeUndefined(), {
      timeout: 60_000,
    });
    expect(await deleteKey(store.management, unknown.id)).toBeUndefined();
    expect([await store.rootKeys.presence(0), await store.rootKeys.findByDigest("unknown")]).toEqual([
      "none",
      undefined,
    ]);
    expect((await store.management.read(list)).items.length).toBe(3);
    expect(await settle(unknown.id)).toEqual([{ outcome: "missing" }]);
    expect(await exchange(unknown.id)).toEqual([{ outcome: "missing" }]);
  });

  it("answers nothing once it is known to be damaged, and says so once", async () => {
    const { store, check, counted, clock } = await crashed();
    const changes = vi.fn();
    store.health?.onChange(changes);
    check.end({ outcome: "damaged", reason: "a page" });
    await vi.waitFor(() => expect(changes).toHaveBeenCalledOnce(), { timeout: 60_000 });
    expect(store.health?.problem).toBeInstanceOf(Unavailable);
    await expect(store.keys.findByDigest(counted.secretDigest)).rejects.toThrow(Unavailable);
    await expect(createKey(store.management, sampleKey(clock))).rejects.toThrow(Unavailable);
    await expect(store.usageLanes[0]?.settle([{ subject: counted.id, cost: 1, count: 1 }])).rejects.toThrow(
      Unavailable,
    );
    await expect(store.tidy(0)).rejects.toThrow(Unavailable);
  });

  it("is not taken for sound when the check itself could not be made", async () => {
    const { store, check, clock } = await crashed();
    check.end({ outcome: "unknown", reason: "no process" });
    await expect(store.keys.findByDigest(sampleKey(clock).secretDigest)).rejects.toThrow(Unavailable);
    expect(store.health?.problem).toBeUndefined();
  });
});

describe("the check of a data file", () => {
  it("ends by itself while a large one is served, and is ended by a store that closes", async () => {
    const { options, clock, file } = testOptions();
    const first = await open(options);
    await createKey(first.management, sampleKey(clock));
    const image = crashImageOf(file);
    tamper(image, "CREATE TABLE filler AS SELECT zeroblob(9000000) AS bytes");
    await (await openSqliteStore({ ...options, file: image })).close();
    const store = await open({ ...options, file: image });
    expect(store.health?.doubt).toBeInstanceOf(Unavailable);
    await vi.waitFor(() => expect(store.health?.doubt).toBeUndefined(), { timeout: 60_000 });
    expect(store.health?.problem).toBeUndefined();
    expect(await store.keys.findByDigest("unknown")).toBeUndefined();
  });

  it("finds a table that lost a write: every page of it is well formed", async () => {
    const { options, clock, file } = testOptions();
    const first = await openSqliteStore(options);
    const deleted = sampleKey(clock);
    await createKey(first.management, deleted);
    await first.close();
    const [table] = readRows(file, "SELECT rootpage FROM sqlite_master WHERE name = 'keys'");
    const old = copyPage(file, Number(table?.rootpage));
    const second = await openSqliteStore(options);
    const key = sampleKey(clock);
    await createKey(second.management, key);
    await deleteKey(second.management, deleted.id);
    await second.close();
    overwritePage(file, Number(table?.rootpage), old);
    expect(readRows(file, "PRAGMA quick_check"), "the short check sees nothing").toEqual([{ quick_check: "ok" }]);

    const store = await open(options);
    await expect(store.keys.findByDigest(key.secretDigest)).rejects.toThrow(store.health?.problem);
  });

  it.each([
    ["a counter", { remaining: 5 }],
    ["a window", { rateLimit: { mode: "strict", limit: 5, durationMs: 1000 } }],
    [
      "a window of a limit with a name",
      { rateLimits: [{ name: "a", rule: { mode: "strict", limit: 5, durationMs: 1000 } }] },
    ],
  ] as const)("finds %s whose key is gone", async (_, fields) => {
    const { options, clock, file } = testOptions();
    const first = await openSqliteStore(options);
    const key = sampleKey(clock, fields);
    await createKey(first.management, key);
    await first.close();
    tamper(file, "PRAGMA foreign_keys = OFF; DELETE FROM keys");

    const store = await open(options);
    await expect(store.keys.findByDigest(key.secretDigest)).rejects.toThrow(store.health?.problem);
  });

  it("is made again when reading fails while the store is used", async () => {
    const { options, clock, file, logLines } = testOptions();
    const first = await openSqliteStore(options);
    const keys = Array.from({ length: 300 }, () => sampleKey(clock, { meta: { filler: "x".repeat(3000) } }));
    await Promise.all(keys.map((key) => createKey(first.management, key)));
    await first.close();
    const store = await open(options);
    expect(store.health).toMatchObject({ problem: undefined, doubt: undefined });

    damageEveryFourthPage(file);
    for (const { secretDigest } of keys) await Promise.resolve(store.keys.findByDigest(secretDigest)).catch(() => {});
    await vi.waitFor(() => expect(store.health?.problem).toBeInstanceOf(Unavailable), { timeout: 60_000 });
    expect(logLines.join("")).toContain("the data file is damaged");
    expect(logLines.join("")).toContain("put a backup into an empty data folder");
  });
});

describe("the note of a clean stop", () => {
  function closedFile(): string {
    const file = join(tempFolder(), "latchkey.db");
    expect(readDataFileState(file)).toEqual({ state: "new", bytes: 0 });
    noteOpened(file);
    writeFileSync(file, "data");
    expect(readDataFileState(file)).toEqual({ state: "unclean", bytes: 4 });
    noteClosed(file);
    expect(readDataFileState(file)).toEqual({ state: "clean", bytes: 4 });
    return file;
  }

  it.each<[string, (file: string) => void]>([
    ["a log is left beside the file", (file) => writeFileSync(`${file}-wal`, "log")],
    ["the file has changed since", (file) => writeFileSync(file, "DATA")],
    ["the file has another length", (file) => writeFileSync(file, "data and more")],
    ["the file is a copy", (file) => cpSync(file, file.replace("latchkey.db", "copy.db"))],
  ])("does not count when %s", (_, change) => {
    const file = closedFile();
    // Otherwise the change could come within one tick of the file system's clock.
    utimesSync(file, 1, 1);
    noteClosed(file);
    change(file);
    const copy = file.replace("latchkey.db", "copy.db");
    const changed = statSync(copy, { throwIfNoEntry: false }) === undefined ? file : copy;
    expect(readDataFileState(changed).state).toBe("unclean");
  });

  it("is not written where a log is left, and an empty log does not matter", () => {
    const file = closedFile();
    writeFileSync(`${file}-wal`, "");
    expect(readDataFileState(file).state).toBe("clean");
    writeFileSync(file, "other data");
    noteClosed(file);
    expect(readDataFileState(file).state).toBe("unclean");
  });

  it("is not left by a store that was never checked", async () => {
    const { options, file } = testOptions();
    const first = await open(options);
    const image = crashImageOf(file);
    tamper(image, "CREATE TABLE filler AS SELECT zeroblob(9000000) AS bytes");
    const store = await openSqliteStore({ ...options, file: image, prepareCheck: heldCheck().prepareCheck });
    await store.close();
    expect(readDataFileState(image).state).toBe("unclean");
    await first.close();
    expect(readDataFileState(file).state).toBe("clean");
  });

  it.each<[string, (file: string) => void]>([
    ["gone", (file) => rmSync(file)],
    ["empty", (file) => writeFileSync(file, "")],
  ])("tells a file that is %s from one that never was", (_, lose) => {
    const file = closedFile();
    lose(file);
    expect(() => readDataFileState(file)).toThrow(DataFolderError);
    expect(() => readDataFileState(file)).toThrow(
      /put a backup into an empty data folder, or remove .*latchkey.db-state/,
    );
  });
});
