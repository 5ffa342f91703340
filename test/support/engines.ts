import type { Settings } from "../../src/config/settings.ts";
import { Secret } from "../../src/domain/secret.ts";
import { createTestDatabase, hasPostgres } from "./test-database.ts";

/** A store to run a suite on, new and empty each time. */
export interface Engine {
  readonly name: string;
  /** Settings for a server in this process. */
  settings(): Promise<Partial<Settings>>;
  /** The environment for a server in a process of its own. */
  environment(): Promise<Record<string, string>>;
}

const sqlite: Engine = {
  name: "SQLite",
  settings: async () => ({}),
  environment: async () => ({}),
};

const postgres: Engine = {
  name: "Postgres",
  settings: async () => ({ databaseUrl: new Secret(await createTestDatabase()) }),
  environment: async () => ({ DATABASE_URL: await createTestDatabase() }),
};

/** Every engine of this run: `describe.each(engines)("on $name", …)`. */
export const engines: readonly Engine[] = hasPostgres ? [sqlite, postgres] : [sqlite];
