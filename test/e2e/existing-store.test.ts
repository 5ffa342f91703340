import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type engines, oneEngine, type StoreEnvironment } from "../support/engines.ts";
import { runLatchkey, startLatchkey } from "../support/latchkey-process.ts";
import { rawClient } from "../support/raw-client.ts";
import { query } from "../support/run-statement.ts";
import { tempFolder } from "../support/temp-folder.ts";
import { createEmptyDatabase, hasPostgres } from "../support/test-database.ts";
import { testRootKey } from "../support/test-root-key.ts";

const settings = { PORT: "0", LATCHKEY_INTERNAL_PORT: "0", LATCHKEY_DRAIN_MS: "0" };
const existing = { LATCHKEY_STORE: "existing" };
const created = '"msg":"the store was empty: a new one was created"';

/** A store that nothing has made yet: neither its data folder nor a table. */
async function lostStore(engine: (typeof engines)[number]): Promise<StoreEnvironment> {
  const store = await engine.environment();
  const LATCHKEY_DATA_DIR = join(store.LATCHKEY_DATA_DIR, "lost");
  return store.DATABASE_URL === undefined
    ? { LATCHKEY_DATA_DIR }
    : { ...store, LATCHKEY_DATA_DIR, DATABASE_URL: await createEmptyDatabase() };
}

/** Everything in the data folder and the database that a start could make. */
async function contentOf({ LATCHKEY_DATA_DIR: folder, DATABASE_URL: url }: StoreEnvironment) {
  const { rows } = url
    ? await query(url, "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace ORDER BY relname")
    : { rows: [] };
  return { files: existsSync(folder) ? readdirSync(folder).sort() : undefined, tables: rows };
}

async function expectRefused(store: StoreEnvironment, args: readonly string[] = ["serve"]): Promise<void> {
  const before = await contentOf(store);
  const { code, stdout, stderr } = await runLatchkey(args, { ...settings, ...store, ...existing });
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  const where = store.DATABASE_URL ? "the database" : `the data folder ${store.LATCHKEY_DATA_DIR}`;
  const verb = args[0] === "serve" ? "start" : "migrate";
  expect(stderr).toMatch(/^[^\n]*\n[^\n]*\n$/);
  expect(stderr).toContain(
    `latchkey cannot ${verb}:\n  - ${where} has no data of Latchkey, and LATCHKEY_STORE=existing`,
  );
  expect(await contentOf(store)).toEqual(before);
}

async function stop(latchkey: Awaited<ReturnType<typeof startLatchkey>>): Promise<void> {
  latchkey.kill("SIGTERM");
  expect(await latchkey.exited).toBe(0);
}

describe.each(oneEngine)("LATCHKEY_STORE=existing on $name", (engine) => {
  it("refuses a store that is not there, and makes no folder, file or table", async () => {
    const store = await lostStore(engine);
    for (const args of [["serve"], ["migrate", "status"], ["migrate", "up"]]) await expectRefused(store, args);
    expect(await contentOf(store)).toEqual({ files: undefined, tables: [] });
  });

  it("refuses one whose tables have no row, as migrations leave it", async () => {
    const store = await lostStore(engine);
    expect(await runLatchkey(["migrate", "up"], store)).toMatchObject({ code: 0 });
    await expectRefused(store);
    await expectRefused(store, ["migrate", "up"]);
  });

  it("serves one that has a root key alone, which the start that created it has logged", async () => {
    const store = await lostStore(engine);
    const first = await startLatchkey({ ...settings, ...store });
    await stop(first);
    const [line, ...others] = first
      .stderr()
      .split("\n")
      .filter((text) => text.includes(created));
    expect(JSON.parse(line ?? "")).toMatchObject({ level: "warn" });
    expect(others).toEqual([]);

    const second = await startLatchkey({ ...settings, ...store, ...existing });
    await stop(second);
    expect(second.stderr()).not.toContain(created);
  });

  it("serves one that has a key alone", async () => {
    const store = { ...(await lostStore(engine)), LATCHKEY_ROOT_KEY: testRootKey };
    const first = await startLatchkey({ ...settings, ...store });
    const { key } = await rawClient({ ...first, rootKey: testRootKey }).keys.createKey({ apiId: "api" });
    await stop(first);
    const second = await startLatchkey({ ...settings, ...store, ...existing });
    expect(await rawClient({ ...second, rootKey: testRootKey }).keys.verifyKey({ key })).toMatchObject({ valid: true });
  });
});

describe("LATCHKEY_STORE=existing", () => {
  it("lets a backup be restored into an empty folder, which is then served", async () => {
    const store = { LATCHKEY_DATA_DIR: join(tempFolder(), "data"), LATCHKEY_ROOT_KEY: testRootKey };
    const first = await startLatchkey({ ...settings, ...store });
    const { key } = await rawClient({ ...first, rootKey: testRootKey }).keys.createKey({ apiId: "api" });
    const backup = join(tempFolder(), "backup.db");
    expect(await runLatchkey(["backup", backup], { ...store, ...existing })).toMatchObject({ code: 0 });

    const replaced = { ...store, ...existing, LATCHKEY_DATA_DIR: join(tempFolder(), "data") };
    expect(await runLatchkey(["restore", backup], replaced)).toMatchObject({ code: 0 });
    const second = await startLatchkey({ ...settings, ...replaced });
    expect(await rawClient({ ...second, rootKey: testRootKey }).keys.verifyKey({ key })).toMatchObject({ valid: true });
  });

  it.runIf(hasPostgres)("lets a folder be copied into an empty database, which is then served", async () => {
    const folder = { LATCHKEY_DATA_DIR: tempFolder() };
    await stop(await startLatchkey({ ...settings, ...folder }));
    const url = await createEmptyDatabase();
    expect(await runLatchkey(["copy"], { ...folder, ...existing, LATCHKEY_COPY_TO: url })).toMatchObject({ code: 0 });
    await stop(await startLatchkey({ ...settings, ...folder, ...existing, DATABASE_URL: url }));
  });

  it.runIf(hasPostgres)("refuses the same database for all replicas that start at once", async () => {
    const store = { LATCHKEY_DATA_DIR: join(tempFolder(), "lost"), DATABASE_URL: await createEmptyDatabase() };
    await Promise.all([expectRefused(store), expectRefused(store)]);
    expect(await contentOf(store)).toEqual({ files: undefined, tables: [] });
  });

  it.runIf(hasPostgres)("is created once by replicas that may create it and start at once", async () => {
    const DATABASE_URL = await createEmptyDatabase();
    const replicas = await Promise.all(
      [1, 2].map(() => startLatchkey({ ...settings, LATCHKEY_DATA_DIR: tempFolder(), DATABASE_URL })),
    );
    expect(replicas.filter((replica) => replica.stderr().includes(created))).toHaveLength(1);
    await Promise.all(replicas.map(stop));
  });
});
