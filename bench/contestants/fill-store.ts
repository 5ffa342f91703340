import { closeSync, openSync, writeSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as delay, setImmediate as nextTurn } from "node:timers/promises";
import { systemClock } from "../../src/ambient/clock.ts";
import { sha256 } from "../../src/ambient/crypto.ts";
import { createLog } from "../../src/ambient/log.ts";
import { createMetrics } from "../../src/ambient/metrics.ts";
import { createSystemRandom } from "../../src/ambient/random.ts";
import { byteLengthDefault, formatKey } from "../../src/domain/key-format.ts";
import { claimDataFolder } from "../../src/store/sqlite/data-folder.ts";
import { openSqliteStore } from "../../src/store/sqlite/open-sqlite-store.ts";
import type { Store } from "../../src/store/store.ts";
import { type CreatedKey, createKey } from "../../src/usecases/create-key.ts";
import { plainKey } from "../../test/support/plain-key.ts";
import type { KeyFile } from "../loads/wrk-scripts.ts";

const batchSize = 10_000;

/**
 * Makes a data folder with so many keys, and a file of them for the loads. The store's own code makes the tables and the
 * first key; the others are copies of its rows with ids and digests of their own, as creating a million one by one would
 * take minutes.
 */
export async function fillStore(dataDir: string, count: number, keysFile: string): Promise<KeyFile> {
  const folder = claimDataFolder(dataDir);
  const first = await createFirst(folder.databaseFile);
  const db = new DatabaseSync(folder.databaseFile, { enableForeignKeyConstraints: false });
  // Data lost with the machine is created again. Digests come in random order: every page of their index is written.
  db.exec("PRAGMA synchronous = OFF; PRAGMA cache_size = -1000000");
  const copyKey = db.prepare(copyStatement(db, "keys", ["digest", "id", "start"], "id"));
  const random = createSystemRandom();
  const file = openSync(keysFile, "w");
  writeSync(file, first.key);
  for (let made = 1; made < count; await nextTurn()) {
    const keys: string[] = [];
    db.exec("BEGIN");
    for (; made < count && keys.length < batchSize; made++) {
      const { key, start } = formatKey("live", random.bytes(byteLengthDefault));
      copyKey.run(sha256(key), filledId(made), start, first.keyId);
      keys.push(key);
    }
    db.exec("COMMIT");
    writeSync(file, keys.join(""));
  }
  closeSync(file);
  db.close();
  folder.release();
  return { path: keysFile, count, keyLength: first.key.length };
}

/** The id of the key that was made as number so and so. They sort in that order, and before those of keys made now. */
export function filledId(number: number): string {
  return `key_${number.toString(36).padStart(22, "0")}`;
}

/** The embedded store, as the server opens it. */
export function openStore(file: string): Promise<Store> {
  const onDeath = (cause: unknown) => {
    throw cause;
  };
  const log = createLog("error", (line) => process.stderr.write(line));
  return openSqliteStore({ file, log, clock: systemClock, metrics: createMetrics(), onDeath });
}

async function createFirst(file: string): Promise<CreatedKey> {
  const store = await openStore(file);
  const created = await createPlainKey(store);
  await store.close();
  return created;
}

/** A key without counter and limit. */
export function createPlainKey({ management }: Store): Promise<CreatedKey> {
  const request = { ...plainKey, byteLength: undefined, useDefaults: false, apiId: "bench", prefix: "live" };
  return createKey(management, request, undefined, { clock: systemClock, random: createSystemRandom() });
}

/** Checks the file and closes it in order, so that the next start is one after an orderly stop. */
export async function closeInOrder(dataDir: string): Promise<void> {
  const folder = claimDataFolder(dataDir);
  const store = await openStore(folder.databaseFile);
  while (store.health?.doubt !== undefined) await delay(100);
  await store.close();
  folder.release();
}

/** Copies the row of a key with all its columns, and new values for some of them. */
function copyStatement(db: DatabaseSync, table: string, renewed: readonly string[], keyColumn: string): string {
  const columns = db
    .prepare(`SELECT name FROM pragma_table_info('${table}')`)
    .all()
    .map((row) => String(row.name));
  const copied = columns.filter((column) => !renewed.includes(column));
  const values = [...renewed.map(() => "?"), ...copied].join(", ");
  const names = [...renewed, ...copied].join(", ");
  return `INSERT INTO ${table} (${names}) SELECT ${values} FROM ${table} WHERE ${keyColumn} = ?`;
}
