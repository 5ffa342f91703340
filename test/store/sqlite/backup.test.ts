import { copyFileSync, existsSync, mkdirSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { backUpDataFolder } from "../../../src/store/sqlite/backup.ts";
import { DataFolderError } from "../../../src/store/sqlite/data-folder.ts";
import { openSqliteStore } from "../../../src/store/sqlite/open-sqlite-store.ts";
import { foundAs, sampleKey } from "../../contract/sample-keys.ts";
import { charge, settled } from "../../contract/usage-cases.ts";
import { createKey } from "../../support/manage.ts";
import { tempFolder } from "../../support/temp-folder.ts";
import { openTestEngine, readRows, testOptions } from "./open-test-engine.ts";

const start = 1_000_000;

describe("a backup", () => {
  it("taken while the service writes holds one moment: all that was acknowledged before, and no half of a commit", async () => {
    const { file, clock, keys, settle } = await openTestEngine();
    // Every commit charges both counters, so at every moment they are equal.
    const twins = [1, 2].map(() => sampleKey(clock, { remaining: start, meta: { filler: "x".repeat(2000) } }));
    await Promise.all(twins.map((key) => createKey(keys, key)));
    const filler = Array.from({ length: 500 }, () => sampleKey(clock, { meta: { filler: "x".repeat(2000) } }));
    await Promise.all(filler.map((key) => createKey(keys, key)));
    let used = 0;
    const chargeBoth = async () => {
      await settle(twins.map(({ id }) => ({ subject: id, cost: 1, count: 1 })));
      used++;
    };
    while (used < 50) await chargeBoth();

    const usedBefore = used;
    const target = join(tempFolder(), "copy.db");
    let done = false;
    const backingUp = backUpDataFolder(dirname(file), target).finally(() => {
      done = true;
    });
    while (!done) await chargeBoth();
    await backingUp;

    expect(readRows(target, "PRAGMA integrity_check")).toEqual([{ integrity_check: "ok" }]);
    const [first, second] = readRows(target, "SELECT remaining FROM counters").map((row) => Number(row.remaining));
    expect(first).toBe(second);
    expect(start - (first as number)).toBeGreaterThanOrEqual(usedBefore);
    expect(start - (first as number)).toBeLessThanOrEqual(used);
    expect(used, "the service went on writing meanwhile").toBeGreaterThan(usedBefore);
  });

  it("put into an empty folder is a store that goes on where it was taken", async () => {
    const { file, clock, keys, settle } = await openTestEngine();
    const key = sampleKey(clock, { remaining: 5 });
    await createKey(keys, key);
    await settle([{ subject: key.id, cost: 1, count: 2 }]);
    const target = join(tempFolder(), "copy.db");
    await backUpDataFolder(dirname(file), target);
    await settle([{ subject: key.id, cost: 1, count: 2 }]);

    const restored = testOptions();
    mkdirSync(dirname(restored.file), { recursive: true });
    copyFileSync(target, restored.file);
    const store = await openSqliteStore(restored.options);
    onTestFinished(() => store.close());
    expect(await store.keys.findByDigest(key.secretDigest)).toStrictEqual(foundAs({ ...key, remaining: 3 }));
    expect(await charge(store, key, 1)).toEqual(settled(1, 2));
  });

  it("never overwrites a file", async () => {
    const { file } = await openTestEngine();
    await expect(backUpDataFolder(dirname(file), file)).rejects.toThrow(new DataFolderError(`${file} exists already`));
  });

  it("is not written to where a link leads, not even if nothing is there", async () => {
    const { file } = await openTestEngine();
    const [link, elsewhere] = [join(tempFolder(), "copy.db"), join(tempFolder(), "elsewhere")];
    symlinkSync(elsewhere, link);
    await expect(backUpDataFolder(dirname(file), link)).rejects.toThrow(new DataFolderError(`${link} exists already`));
    expect(existsSync(elsewhere)).toBe(false);
  });

  it("of a folder without data is refused, and makes no file there", async () => {
    const path = tempFolder();
    const target = join(path, "copy.db");
    await expect(backUpDataFolder(path, target)).rejects.toThrow(
      new DataFolderError(`there is no Latchkey data in ${path}`),
    );
    await expect(backUpDataFolder(path, target), "nor afterwards").rejects.toThrow("there is no Latchkey data");
  });
});
