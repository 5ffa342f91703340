import { systemClock } from "../../src/ambient/clock.ts";
import { createMetrics } from "../../src/ambient/metrics.ts";
import { createSystemRandom } from "../../src/ambient/random.ts";
import {
  openPostgresStore,
  type PostgresStore,
  type PostgresStoreOptions,
} from "../../src/store/postgres/open-postgres-store.ts";
import { createTestDatabase } from "./test-database.ts";
import { atTestEnd } from "./test-end.ts";

/** A store on Postgres, in a database of its own unless one is named. It is closed with the test. */
export async function openTestStore(options: Partial<PostgresStoreOptions> = {}): Promise<PostgresStore> {
  const store = await openPostgresStore({
    clock: systemClock,
    random: createSystemRandom(),
    metrics: createMetrics(),
    url: options.url ?? (await createTestDatabase()),
    connectionsMax: 4,
    lanes: 2,
    // However busy the machine is.
    usageTimeoutMs: 20_000,
    ...options,
  });
  atTestEnd(() => store.close());
  return store;
}
