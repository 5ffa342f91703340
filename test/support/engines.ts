import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import pg from "pg";
import type { Settings } from "../../src/config/settings.ts";
import { Secret } from "../../src/domain/secret.ts";
import { sized } from "./deep.ts";
import { tempFolder } from "./temp-folder.ts";
import { createTestDatabase, hasPostgres } from "./test-database.ts";

/** A store to run a suite on, new and empty each time: two servers with the same settings share it. */
export interface Engine {
  readonly name: string;
  /** The file of a generated root key, in the data folder. */
  readonly rootKeyFile: string;
  /** Settings for a server in this process. */
  settings(): Promise<StoreSettings>;
  /** The environment for a server in a process of its own. Its folder is gone when the test is, or at another end. */
  environment(atEnd?: (undo: () => void) => void): Promise<StoreEnvironment>;
  /** Every byte of the store's files. */
  readFiles(settings: StoreSettings): Promise<Buffer>;
}

export type StoreSettings = Pick<Settings, "dataDir"> & Partial<Settings>;
export type StoreEnvironment = { LATCHKEY_DATA_DIR: string; DATABASE_URL?: string; LATCHKEY_USAGE_TIMEOUT_MS?: string };

/** However busy the machine is, uses are decided: what suites on every engine count is uses, not 503s. */
const usageTimeoutMs = 10_000;

const sqlite: Engine = {
  name: "SQLite",
  rootKeyFile: "root-key",
  settings: async () => ({ dataDir: tempFolder() }),
  environment: async (atEnd) => ({ LATCHKEY_DATA_DIR: tempFolder(atEnd) }),
  readFiles: async ({ dataDir }) => readFolder(dataDir),
};

const postgres: Engine = {
  name: "Postgres",
  rootKeyFile: "root-key-postgres",
  settings: async () => ({
    dataDir: tempFolder(),
    databaseUrl: new Secret(await createTestDatabase()),
    usageTimeoutMs,
  }),
  environment: async (atEnd) => ({
    LATCHKEY_DATA_DIR: tempFolder(atEnd),
    DATABASE_URL: await createTestDatabase(),
    LATCHKEY_USAGE_TIMEOUT_MS: String(usageTimeoutMs),
  }),
  async readFiles({ dataDir, databaseUrl }) {
    const client = new pg.Client(databaseUrl?.reveal());
    await client.connect();
    try {
      // Writes the data that is only in memory to the files.
      await client.query("CHECKPOINT");
      const { rows } = await client.query(
        "SELECT current_setting('data_directory') AS root, oid FROM pg_database WHERE datname = current_database()",
      );
      const [{ root, oid }] = rows as [{ root: string; oid: number }];
      return Buffer.concat([readFolder(dataDir), readFolder(join(root, "base", String(oid)))]);
    } finally {
      await client.end();
    }
  },
};

/** Every engine of this run: `describe.each(engines)("on $name", …)`. */
export const engines: readonly Engine[] = hasPostgres ? [sqlite, postgres] : [sqlite];

/**
 * For what does not depend on the engine, because the contract of the stores and the tests of faults show the rest: the
 * embedded one in `npm test`, Postgres at full size.
 */
export const oneEngine: readonly Engine[] = sized([sqlite], engines.slice(1));

function readFolder(folder: string): Buffer {
  return Buffer.concat(readdirSync(folder).map((name) => readFileSync(join(folder, name))));
}
