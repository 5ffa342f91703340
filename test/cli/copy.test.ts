import { cpSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { builtProgram } from "../support/artefact.ts";
import { contentsOf, inFile, type PausedTable, type PausedTarget, pausedTarget, rowsOf } from "../support/copies.ts";
import { runLatchkey, startLatchkey } from "../support/latchkey-process.ts";
import { rawClient } from "../support/raw-client.ts";
import { query } from "../support/run-statement.ts";
import { tempFolder } from "../support/temp-folder.ts";
import { createEmptyDatabase, hasPostgres } from "../support/test-database.ts";
import { testRootKey } from "../support/test-root-key.ts";

const minuteMs = 60_000;
const ports = { PORT: "0", LATCHKEY_INTERNAL_PORT: "0" };
/** The last line of a copy that is finished. */
const finishedText = "The copy is finished. Serve it with DATABASE_URL: this data folder is not served any more.";

function copy(dataDir: string, url: string, killed?: Promise<unknown>) {
  const environment = { LATCHKEY_DATA_DIR: dataDir, LATCHKEY_COPY_TO: url };
  return runLatchkey(["copy"], environment, builtProgram(), killed);
}

/** A copy that is killed when a batch of this table is under way in the target. */
async function copyInto(target: PausedTarget, table: PausedTable, dataDir: string): Promise<void> {
  expect(await copy(dataDir, target.url, target.paused(table))).toMatchObject({ code: null, stdout: "" });
}

/** Why a command ends without having done anything. */
async function refusalOf(args: readonly string[], environment: Record<string, string>): Promise<string> {
  const { code, stdout, stderr } = await runLatchkey(args, { ...ports, ...environment });
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  expect(stderr).toMatch(/^latchkey cannot (copy|start):\n( {2}- .*\n)+$/);
  return stderr;
}

type StoreOfService = { LATCHKEY_DATA_DIR: string; DATABASE_URL?: string; LATCHKEY_ROOT_KEY?: string };

/** The service on a store. Without a root key of ours it has the generated one. */
async function startService(environment: StoreOfService) {
  const server = await startLatchkey({ ...environment, LATCHKEY_DRAIN_MS: "0" }, undefined, (undo) => undos.push(undo));
  const rootKey =
    environment.LATCHKEY_ROOT_KEY ?? readFileSync(join(environment.LATCHKEY_DATA_DIR, "root-key"), "utf8");
  const stop = async () => {
    server.kill("SIGTERM");
    expect(await server.exited).toBe(0);
  };
  return { keys: rawClient({ baseUrl: server.baseUrl, rootKey: rootKey.trim() }).keys, stop };
}

/** Uses the service on a store, and stops it in order. */
async function serving<Result>(
  environment: StoreOfService,
  use: (keys: Awaited<ReturnType<typeof startService>>["keys"]) => Promise<Result>,
): Promise<Result> {
  const { keys, stop } = await startService(environment);
  const result = await use(keys);
  await stop();
  return result;
}

const others = 8000;
let template: { folder: string; key: string };
const undos: (() => void)[] = [];

/** One key that has 100 uses, and many others like it. */
beforeAll(async () => {
  const folder = tempFolder((undo) => undos.push(undo));
  const { keys, stop } = await startService({ LATCHKEY_DATA_DIR: folder, LATCHKEY_ROOT_KEY: testRootKey });
  const { key } = await keys.createKey({ apiId: "api", remaining: 100 });
  await stop();
  inFile(folder, (db) => {
    for (const [table, changed] of [
      ["keys", { digest: "'bulk ' || n", id: "'bulk ' || n" }],
      ["counters", { subject: "'bulk ' || n" }],
    ] as const) {
      const columns = (db.prepare(`PRAGMA table_info(${table})`).all() as { name: string }[]).map(({ name }) => name);
      const values = columns.map((name) => (changed as Record<string, string>)[name] ?? name);
      db.exec(`WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ${others})
        INSERT INTO ${table} SELECT ${values.join(", ")} FROM ${table} JOIN numbers`);
    }
  });
  template = { folder, key };
});
afterAll(() => {
  for (const undo of undos) undo();
});

/** A stopped store of the test's own. */
function largeStore(): { dataDir: string; key: string } {
  const dataDir = join(tempFolder(), "data");
  cpSync(template.folder, dataDir, { recursive: true });
  return { dataDir, key: template.key };
}

describe.runIf(hasPostgres).concurrent("latchkey copy", () => {
  it("takes keys with everything that they carry to Postgres, where the same root key and secrets go on", async () => {
    const dataDir = join(tempFolder(), "data");
    const url = await createEmptyDatabase();
    const meta = {
      "k \u2028 'quoted' \"too\" \\ $1": ["ключ", "鍵", "🔑", "\u0001", null, 1e-7, { __proto__x: {} }],
    };
    const expires = Date.now() + 60 * minuteMs;
    const before = await serving({ LATCHKEY_DATA_DIR: dataDir }, async (keys) => {
      const refill = { interval: "daily", amount: 1000, carryOver: true } as const;
      const counted = await keys.createKey({
        apiId: "api 'one'",
        remaining: 10,
        refill,
        name: "ключ 🔑",
        ownerId: "o\\'",
      });
      const strict = await keys.createKey({
        apiId: "api",
        ratelimit: { async: false, limit: 5, duration: 60 * minuteMs },
      });
      const lists = { permissions: ["docs.*", "admin"], ipAllow: ["10.0.0.0/8", "2001:db8::/32"] };
      const ratelimits = [
        { name: "strict", async: false, limit: 9, duration: 60 * minuteMs },
        { name: "local", limit: 9, duration: minuteMs },
      ];
      const ending = await keys.createKey({ apiId: "api", meta, expires }, { idempotencyKey: "order-1" });
      const local = await keys.createKey({
        apiId: "api",
        ratelimit: { limit: 3, duration: minuteMs },
        ratelimits,
        costMax: 7,
        ...lists,
      });
      const disabled = await keys.createKey({ apiId: "api" });
      await keys.updateKey({ keyId: disabled.keyId, enabled: false, name: "off" });
      const deleted = await keys.createKey({ apiId: "api", remaining: 1 });
      await keys.deleteKey({ keyId: deleted.keyId });
      for (let i = 0; i < 3; i++) await keys.verifyKey({ key: counted.key });
      for (let i = 0; i < 4; i++) await keys.verifyKey({ key: strict.key });
      const all = { counted, strict, ending, local, disabled };
      const read = await Promise.all(Object.values(all).map(({ keyId }) => keys.getKey({ keyId })));
      return { ...all, deleted, read, reset: (await keys.verifyKey({ key: strict.key })).ratelimit?.reset };
    });
    inFile(dataDir, (db) =>
      db.exec(`INSERT INTO owners (id, list_id, meta, enabled, has_counter, created_at_ms, updated_at_ms, version, event_id)
        VALUES ('other 🔑', 'evt_1', '{"plan":"ключ"}', 1, 0, 1, 1, 1, 'evt_1')`),
    );
    const targetFile = join(tempFolder(), "target");
    writeFileSync(targetFile, `${url}\n`);
    const environment = { LATCHKEY_DATA_DIR: dataDir, LATCHKEY_COPY_TO_FILE: targetFile };
    const { code, stdout, stderr } = await runLatchkey(["copy"], environment);

    const sizes = {
      apis: 2,
      keys: 5,
      ending_secrets: 0,
      owners: 1,
      counters: 1,
      readings: 1,
      readings_kept: 0,
      permit_windows: 2,
      root_keys: 1,
      events: 8,
      idempotency: 1,
    };
    const lines = Object.entries({ table: "source", ...sizes }).map(
      ([table, n]) => `${table} ${n} ${n === "source" ? "target" : n}`,
    );
    expect({ code, lines: stdout.replaceAll(/ +/g, " ") }).toEqual({
      code: 0,
      lines: `${[...lines, finishedText].join("\n")}\n`,
    });
    expect(stderr).toContain("keys: 5 of 5\n");
    expect(stdout + stderr).not.toContain(url);
    const { source, target } = await rowsOf(dataDir, url);
    expect(target).toEqual(source);
    await serving({ LATCHKEY_DATA_DIR: dataDir, DATABASE_URL: url }, async (keys) => {
      const { counted, strict, ending, local, disabled, deleted } = before;
      const verify = ({ key }: { key: string }) => keys.verifyKey({ key });
      const all = [counted, strict, ending, local, disabled];
      expect(await Promise.all(all.map(({ keyId }) => keys.getKey({ keyId })))).toEqual(before.read);
      expect(await verify(counted)).toMatchObject({ code: "VALID", remaining: 6 });
      const { reset } = before;
      expect(await verify(strict)).toMatchObject({
        code: "RATE_LIMITED",
        ratelimit: { limit: 5, remaining: 0, reset },
      });
      expect(await verify(ending)).toMatchObject({ code: "VALID", meta });
      expect(await verify(local)).toMatchObject({ code: "FORBIDDEN" });
      const rightly = { key: local.key, ip: "2001:db8::7", permissions: "docs.read AND admin" };
      expect(await keys.verifyKey(rightly)).toMatchObject({ code: "VALID" });
      expect(await verify(disabled)).toMatchObject({ code: "DISABLED" });
      expect(await verify(deleted)).toMatchObject({ code: "NOT_FOUND" });
      expect(await keys.createKey({ apiId: "api", meta, expires }, { idempotencyKey: "order-1" })).toEqual(ending);
      expect((await keys.createKey({ apiId: "new" })).key).toMatch(/./);
    });
    expect(existsSync(join(dataDir, "root-key-postgres"))).toBe(false);
  });

  it("goes on where it was killed, twice, and the target is not served before it is finished", async () => {
    const { dataDir, key } = largeStore();
    inFile(dataDir, (db) => db.exec("UPDATE change_feed SET has_imported_keys = 1"));
    const target = await pausedTarget();
    const { url } = target;
    const feed = async () => (await query(url, "SELECT epoch, has_imported_keys FROM change_feed")).rows[0];
    const { epoch } = await feed();
    await copyInto(target, "keys", dataDir);
    const refusal = await refusalOf(["serve"], { LATCHKEY_DATA_DIR: tempFolder(), DATABASE_URL: url });
    expect(refusal).toContain("the database has an unfinished copy of an embedded store: run latchkey copy again");

    // The next one finds the batch of the killed one still under way.
    const second = copyInto(target, "counters", dataDir);
    const waiting = `SELECT FROM pg_stat_activity WHERE datname = current_database()
      AND wait_event_type = 'Lock' AND wait_event <> 'advisory' AND query LIKE '%unfinished_copy%'`;
    while ((await query(url, waiting)).rowCount === 0) await delay(10);
    await target.release("keys");
    await second;
    expect((await query(url, "SELECT copied_table FROM unfinished_copy")).rows).toEqual([{ copied_table: "counters" }]);

    await target.release("counters");
    const { code, stdout, stderr } = await copy(dataDir, url);
    expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining(finishedText) });
    expect(stderr).not.toContain("keys:");
    expect(Number(/(?<=^counters: )\d+/m.exec(stderr)?.[0])).toBeGreaterThan(2000);
    expect(await feed()).toEqual({ epoch: expect.not.stringMatching(`^${epoch}$`), has_imported_keys: 1 });
    const rows = await rowsOf(dataDir, url);
    expect(rows.target).toEqual(rows.source);
    const served = { LATCHKEY_DATA_DIR: tempFolder(), DATABASE_URL: url, LATCHKEY_ROOT_KEY: testRootKey };
    const verified = await serving(served, (keys) => keys.verifyKey({ key }));
    expect(verified).toMatchObject({ code: "VALID", remaining: 99 });
  });

  it("begins again if the source was served after it was killed", async () => {
    const { dataDir, key } = largeStore();
    const target = await pausedTarget();
    await target.release("keys");
    await copyInto(target, "counters", dataDir);
    await target.release("counters");
    const served = { LATCHKEY_DATA_DIR: dataDir, LATCHKEY_ROOT_KEY: testRootKey };
    expect(await serving(served, (keys) => keys.verifyKey({ key }))).toMatchObject({ remaining: 99 });
    expect(await copy(dataDir, target.url)).toMatchObject({
      code: 0,
      stderr: expect.stringContaining("apis: 1 of 1\n"),
    });
    const rows = await rowsOf(dataDir, target.url);
    expect(rows.target).toEqual(rows.source);
    const used = await query(target.url, "SELECT remaining::int FROM counters WHERE subject NOT LIKE 'bulk%'");
    expect(used.rows).toEqual([{ remaining: 99 }]);
  });

  it("fails if the target has other rows at the end, and leaves it unserved", async () => {
    const { dataDir } = largeStore();
    const target = await pausedTarget();
    await target.release("keys");
    await copyInto(target, "counters", dataDir);
    await target.release("counters");
    await query(target.url, "DELETE FROM keys WHERE id = 'bulk 1'");
    const { code, stdout, stderr } = await copy(dataDir, target.url);
    expect({ code, stdout: stdout.replaceAll(/ +/g, " ") }).toEqual({
      code: 1,
      stdout: expect.stringContaining(`keys ${others + 1} ${others}\n`),
    });
    expect(stderr).toContain(
      "latchkey has not finished the copy:\n  - the target does not have the rows of the source",
    );
    expect((await query(target.url, "SELECT FROM unfinished_copy")).rowCount).toBe(1);
  });

  it("writes nothing to a database that holds something else, or is served", async () => {
    const { dataDir } = largeStore();
    const [used, other, served] = await Promise.all([createEmptyDatabase(), pausedTarget(), createEmptyDatabase()]);
    const environment = (LATCHKEY_COPY_TO: string) => ({ LATCHKEY_DATA_DIR: dataDir, LATCHKEY_COPY_TO });
    const stranger = { LATCHKEY_DATA_DIR: tempFolder(), LATCHKEY_ROOT_KEY: testRootKey };
    await serving({ ...stranger, DATABASE_URL: used }, (keys) => keys.createKey({ apiId: "other" }));
    const { dataDir: otherDir } = largeStore();
    inFile(otherDir, (db) => db.exec("UPDATE change_feed SET epoch = 'of another store'"));
    await copyInto(other, "keys", otherDir);
    await other.release("keys");
    await startLatchkey({ ...stranger, DATABASE_URL: served });

    for (const [url, why] of [
      [used, "has rows in apis that are not from an unfinished copy"],
      [other.url, "has an unfinished copy of another store"],
      [served, "is served by a running process, or was a moment ago"],
    ] as const) {
      const before = url === served ? undefined : await contentsOf(url);
      expect(await refusalOf(["copy"], environment(url))).toContain(`the database of LATCHKEY_COPY_TO ${why}`);
      if (before !== undefined) expect(await contentsOf(url)).toEqual(before);
    }
    expect((await query(served, "SELECT FROM unfinished_copy")).rowCount).toBe(0);
  });

  it("needs a stopped and sound store, an address, and nothing else", async () => {
    const { dataDir } = largeStore();
    const url = await createEmptyDatabase();
    const environment = { LATCHKEY_DATA_DIR: dataDir, LATCHKEY_COPY_TO: url };
    const empty = join(tempFolder(), "empty");
    expect(await refusalOf(["copy"], { ...environment, LATCHKEY_DATA_DIR: empty })).toContain(
      "there is no Latchkey data in",
    );
    expect(existsSync(empty)).toBe(false);
    expect(await refusalOf(["copy"], { LATCHKEY_DATA_DIR: dataDir })).toContain(
      "LATCHKEY_COPY_TO must name the Postgres",
    );
    expect(await refusalOf(["copy"], { ...environment, DATABASE_URL: url })).toContain("DATABASE_URL must not be set");
    const away = `${url.replace(/:\d+\//, ":1/").replace("@", ":p4ssw0rd@")}`;
    const refusal = await refusalOf(["copy"], { ...environment, LATCHKEY_COPY_TO: away });
    expect(refusal).toContain("the database did not answer: ECONNREFUSED");
    expect(refusal).not.toContain("p4ssw0rd");
    const operand = await runLatchkey(["copy", "postgres://user:p4ssw0rd@host/db"], environment);
    expect(operand).toMatchObject({ code: 2, stdout: "" });
    expect(operand.stderr).toContain("copy takes no operands: LATCHKEY_COPY_TO names the target");
    expect(operand.stderr).not.toContain("p4ssw0rd");

    const server = await startLatchkey({ LATCHKEY_DATA_DIR: dataDir, LATCHKEY_ROOT_KEY: testRootKey });
    expect(await refusalOf(["copy"], environment)).toContain("is in use by another process");
    server.kill("SIGKILL");
    await server.exited;
    inFile(dataDir, (db) => db.exec("PRAGMA foreign_keys = OFF; DELETE FROM apis"));
    expect(await refusalOf(["copy"], environment)).toContain("is not sound (a row of keys belongs to nothing)");
    expect(await contentsOf(url)).toEqual([]);
  });
});
