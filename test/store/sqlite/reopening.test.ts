import { copyFileSync, existsSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { unlimitedRootKey } from "../../../src/domain/root-key.ts";
import { SchemaTooNew } from "../../../src/store/sql/migrate.ts";
import { DataFolderError } from "../../../src/store/sqlite/data-folder.ts";
import { openSqliteStore } from "../../../src/store/sqlite/open-sqlite-store.ts";
import { foundAs, refillRule, sampleKey, sampleRecord } from "../../contract/sample-keys.ts";
import { charge, settled } from "../../contract/usage-cases.ts";
import { createKey, createKeys, deleteKey, done } from "../../support/manage.ts";
import { readRows, tamper, testOptions } from "./open-test-engine.ts";

describe("a data file that is opened again", () => {
  it("holds every key, counter, refill, kept answer and root key", async () => {
    const { options, clock } = testOptions();
    const key = sampleKey(clock, { name: "kept", meta: { plan: "pro" }, remaining: 5, refill: refillRule() });
    const gone = sampleKey(clock, { remaining: 5 });
    const before = await openSqliteStore(options);
    await createKey(before.management, key, sampleRecord(clock, "lookup", "first"));
    await createKey(before.management, gone);
    await deleteKey(before.management, gone.id);
    await before.rootKeys.addFirst("root", "start", clock.nowMs());
    clock.stepTo("2026-01-16T00:00:00.000Z");
    expect(await charge(before, key, 3)).toEqual(settled(3, 7));
    await before.close();

    const after = await openSqliteStore(options);
    onTestFinished(() => after.close());
    expect(await after.keys.findByDigest(key.secretDigest)).toStrictEqual(foundAs({ ...key, remaining: 7 }));
    expect(await after.keys.findByDigest(gone.secretDigest)).toBeUndefined();
    expect(await charge(after, key, 1)).toEqual(settled(1, 6));
    clock.stepTo("2026-01-17T00:00:00.000Z");
    expect(await charge(after, key, 1)).toEqual(settled(1, 9));
    expect(await createKey(after.management, sampleKey(clock), sampleRecord(clock, "other", "x"))).toEqual(done);
    clock.stepTo("2026-01-16T00:00:00.000Z");
    expect(await after.rootKeys.findByDigest("root")).toEqual(unlimitedRootKey("root_generated"));
    expect(await after.rootKeys.addFirst("another", "start", clock.nowMs())).toBe(false);
  });

  it("still knows the answers kept for repeated requests", async () => {
    const { options, clock } = testOptions();
    const before = await openSqliteStore(options);
    await createKey(before.management, sampleKey(clock), sampleRecord(clock, "lookup", "first"));
    await before.close();
    const after = await openSqliteStore(options);
    onTestFinished(() => after.close());
    expect(await createKey(after.management, sampleKey(clock), sampleRecord(clock, "lookup", "second"))).toMatchObject({
      outcome: "repeated",
      record: { sealedAnswer: "sealed first" },
    });
  });

  it("is one file without a log beside it after a store was closed", async () => {
    const { options, file, clock } = testOptions();
    const store = await openSqliteStore(options);
    await createKey(store.management, sampleKey(clock));
    expect(existsSync(`${file}-wal`)).toBe(true);
    await store.close();
    expect([file, `${file}-wal`, `${file}-shm`].map((each) => existsSync(each))).toEqual([true, false, false]);
  });

  it("is refused and left alone when a newer version wrote it, and no thread stays behind", async () => {
    const { options, file, deaths } = testOptions();
    await (await openSqliteStore(options)).close();
    tamper(file, "INSERT INTO schema_migrations VALUES ('9999-later', 0)");
    const tables = readRows(file, "SELECT * FROM sqlite_master");
    const opening = openSqliteStore(options);
    await expect(opening).rejects.toThrow(SchemaTooNew);
    await expect(opening).rejects.toThrow("9999-later");
    // The log goes when the last connection does.
    expect(existsSync(`${file}-wal`)).toBe(false);
    expect(readRows(file, "SELECT * FROM sqlite_master")).toEqual(tables);
    expect(deaths).toEqual([]);
  });

  it.each([
    [
      "is no database",
      (file: string) => writeFileSync(file, "not a database, ".repeat(1000)),
      "file is not a database",
    ],
    ["lies in a folder that is gone", () => {}, "unable to open database file"],
  ])("is refused in words when it %s, and no death is reported", async (_, prepare, reason) => {
    const { options, file, deaths } = testOptions();
    prepare(file);
    const opening = openSqliteStore(reason.startsWith("file") ? options : { ...options, file: `${file}/gone/x.db` });
    await expect(opening).rejects.toThrow(DataFolderError);
    await expect(opening).rejects.toThrow(reason);
    expect(deaths).toEqual([]);
  });
});

it("a log that killed processes have left does not grow with each of them", async () => {
  const logBytes: number[] = [];
  let folder = dirname(testOptions().file);
  for (let kill = 0; kill < 6; kill++) {
    const { options, clock } = testOptions();
    const file = join(folder, "latchkey.db");
    const store = await openSqliteStore({ ...options, file });
    const filler = { filler: "x".repeat(8000) };
    await createKeys(
      store.management,
      Array.from({ length: 60 }, () => sampleKey(clock, { meta: filler })),
    );
    logBytes.push(statSync(`${file}-wal`).size);
    // What a killed process leaves. This one goes on and closes in order.
    folder = dirname(testOptions().file);
    for (const name of ["latchkey.db", "latchkey.db-wal"]) copyFileSync(join(dirname(file), name), join(folder, name));
    await store.close();
  }
  expect(logBytes.at(-1)).toBeLessThan(3 * (logBytes[0] as number));
});
