import { cpSync, statSync, utimesSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, it } from "vitest";
import { sha256 } from "../../src/ambient/crypto.ts";
import { formatKey } from "../../src/domain/key-format.ts";
import { damageEveryFourthPage, emptyLog, misplaceLeaves, overwritePage } from "../support/damage-file.ts";
import { isDeep, sized } from "../support/deep.ts";
import { type LatchkeyProcess, runLatchkey, startLatchkey } from "../support/latchkey-process.ts";
import { rawClient } from "../support/raw-client.ts";
import { tempFolder } from "../support/temp-folder.ts";
import { testRootKey } from "../support/test-root-key.ts";

const environmentOf = (dataDir: string) => ({
  LATCHKEY_DATA_DIR: dataDir,
  LATCHKEY_ROOT_KEY: testRootKey,
  LATCHKEY_DRAIN_MS: "0",
});

/** Its rows are kept in its primary key, the digests of secrets. */
const keysTable = "keys";
const ports = { PORT: "0", LATCHKEY_INTERNAL_PORT: "0" };

/** A folder with many keys of every kind, whose process was ended by this signal; everything is in the data file. */
async function endedBy(signal: NodeJS.Signals): Promise<{ dataDir: string; file: string; keys: string[] }> {
  const dataDir = tempFolder();
  const latchkey = await startLatchkey(environmentOf(dataDir));
  const client = rawClient({ baseUrl: latchkey.baseUrl, rootKey: testRootKey }).keys;
  const ratelimit = { async: false, limit: 1000, duration: 60_000 };
  const kinds = [{}, { remaining: 1000 }, { ratelimit }, { meta: { filler: "x".repeat(300) } }];
  const created = await Promise.all(
    Array.from({ length: sized(160, 320) }, (_, i) => client.createKey({ apiId: "api", ...kinds[i % kinds.length] })),
  );
  latchkey.kill(signal);
  await latchkey.exited;
  const file = join(dataDir, "latchkey.db");
  if (signal === "SIGKILL") emptyLog(file);
  return { dataDir, file, keys: created.map(({ key }) => key) };
}

/**
 * How often each outcome came when all keys were verified: codes, and statuses of failed calls. A sound service is asked again
 * when it has no answer: a strict limit waits for its permit for half a second only, however busy the machine is.
 */
async function outcomesOf(
  { baseUrl }: LatchkeyProcess,
  keys: readonly string[],
  { isSound = false } = {},
): Promise<Record<string, number>> {
  const client = rawClient({ baseUrl }).keys;
  const counts: Record<string, number> = {};
  const askOnce = (key: string) =>
    client.verifyKey({ key }).then(
      ({ code }) => code as string,
      (error: { status?: number }) => String(error.status),
    );
  const verify = async (key: string) => {
    let outcome = await askOnce(key);
    while (isSound && outcome === "503") outcome = await askOnce(key);
    counts[outcome] = (counts[outcome] ?? 0) + 1;
  };
  // Few at a time.
  for (let i = 0; i < keys.length; i += 16) await Promise.all(keys.slice(i, i + 16).map(verify));
  return counts;
}

/** How many of the keys are not found if the file is trusted. */
function missesIn(file: string, keys: readonly string[]): number {
  const db = new DatabaseSync(file, { readOnly: true });
  const find = db.prepare("SELECT 1 FROM keys WHERE digest = ?");
  const isMissed = (key: string) => {
    try {
      return find.get(sha256(key)) === undefined;
    } catch {
      return false;
    }
  };
  const misses = keys.filter(isMissed).length;
  db.close();
  return misses;
}

async function expectOutage(latchkey: LatchkeyProcess, keys: readonly string[]): Promise<void> {
  expect(await outcomesOf(latchkey, keys)).toEqual({ "503": keys.length });
  const client = rawClient({ baseUrl: latchkey.baseUrl, rootKey: testRootKey }).keys;
  await expect(client.createKey({ apiId: "api" })).rejects.toMatchObject({ status: 503 });
  expect((await fetch(`${latchkey.baseUrl}/readyz`)).status).toBe(503);
  expect((await fetch(`${latchkey.baseUrl}/livez`)).status).toBe(200);
  expect(latchkey.stderr()).toContain("put a backup into an empty data folder");
}

describe("a data file after a crash", () => {
  it(`is an outage with ${sized("misplaced pages", "every kind of damage")}: no key is called invalid`, async () => {
    const { dataDir, keys } = await endedBy("SIGKILL");
    const copyOf = (change: (file: string) => void) => {
      const copy = join(tempFolder(), "data");
      cpSync(dataDir, copy, { recursive: true });
      change(join(copy, "latchkey.db"));
      return copy;
    };

    // Page 3 has the names of the migrations.
    const random = copyOf((file) => damageEveryFourthPage(file, 3));
    const misplaced = copyOf((file) => misplaceLeaves(file, keysTable));
    const withoutSchema = copyOf((file) => overwritePage(file, 1, Buffer.alloc(4096, 7)));
    // Otherwise nothing would be shown: SQLite itself says of these that they are not there.
    expect(missesIn(join(misplaced, "latchkey.db"), keys)).toBeGreaterThan(keys.length / 4);

    for (const copy of sized([misplaced], [random, misplaced]))
      await expectOutage(await startLatchkey(environmentOf(copy)), keys);
    const refused = await runLatchkey(["serve"], { ...ports, LATCHKEY_DATA_DIR: withoutSchema });
    expect(refused).toMatchObject({ code: 1, stdout: "" });
    expect(refused.stderr).toMatch(/the data file .* cannot be opened: file is not a database/);

    const sound = await startLatchkey(environmentOf(dataDir));
    expect(await outcomesOf(sound, keys, { isSound: true }), "as it was").toEqual({ VALID: keys.length });
    expect(await outcomesOf(sound, [formatKey(undefined, new Uint8Array(24)).key], { isSound: true })).toEqual({
      NOT_FOUND: 1,
    });
    expect((await fetch(`${sound.baseUrl}/readyz`)).status).toBe(200);
  });
});

if (!isDeep) {
  describe("a data file after an orderly stop", () => {
    it("is an outage where it was damaged since, though it looks as it did then; workers know too", async () => {
      const { dataDir, file, keys } = await endedBy("SIGTERM");
      const { atime, mtime } = statSync(file);
      misplaceLeaves(file, keysTable);
      utimesSync(file, atime, mtime);
      await expectOutage(await startLatchkey({ ...environmentOf(dataDir), LATCHKEY_WORKERS: "2" }), keys);
    });
  });
}
