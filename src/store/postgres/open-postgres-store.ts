import { CompiledQuery, Kysely } from "kysely";
import type { Clock } from "../../ambient/clock.ts";
import type { Metrics } from "../../ambient/metrics.ts";
import type { Random } from "../../ambient/random.ts";
import { migrateUp } from "../sql/migrate.ts";
import type { Schema } from "../sql/schema.ts";
import type { SqlEngine } from "../sql/sql-engine.ts";
import { createSqlKeyStore } from "../sql/sql-key-store.ts";
import { createSqlRootKeyStore } from "../sql/sql-root-key-store.ts";
import type { Store } from "../store.ts";
import { createPgDialect, toQuery, toQueryResult, writePatience } from "./pg-dialect.ts";
import { orRefused } from "./pg-error.ts";
import { pgMigrations } from "./pg-migrations.ts";
import { PgPool } from "./pg-pool.ts";
import { forgetText } from "./settle-statement.ts";
import { UsageLane } from "./usage-lane.ts";

export interface PostgresStoreOptions {
  readonly url: string;
  readonly connectionsMax: number;
  readonly lanes: number;
  readonly clock: Clock;
  readonly random: Random;
  readonly metrics: Metrics;
  readonly ledgerClock?: Pick<Clock, "nowMs">;
}

export interface PgEngine extends SqlEngine {
  close(): Promise<void>;
}

/** The store that grows: any number of replicas on one Postgres. Throws `Unavailable` while the database is not there. */
export async function openPostgresStore(options: PostgresStoreOptions): Promise<Store> {
  const engine = openPgEngine(options);
  try {
    await migrateUp(engine, options.clock.nowMs(), pgMigrations);
    await engine.atomically([CompiledQuery.raw(forgetText)]);
  } catch (error) {
    await engine.close();
    throw orRefused(error);
  }
  const lanes = Array.from({ length: options.lanes }, () => new UsageLane(options));
  return {
    keys: createSqlKeyStore(engine),
    rootKeys: createSqlRootKeyStore(engine),
    usageLanes: lanes,
    async close() {
      for (const lane of lanes) lane.close();
      await engine.close();
    },
  };
}

export function openPgEngine(options: { url: string; connectionsMax: number }): PgEngine {
  const pool = new PgPool(options);
  return {
    db: new Kysely<Schema>({ dialect: createPgDialect(pool) }),
    async atomically(queries) {
      const results = await pool.transaction(queries.map(toQuery), writePatience);
      return results.map(toQueryResult);
    },
    close: () => pool.close(),
  };
}
