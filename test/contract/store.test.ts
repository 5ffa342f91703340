import { join } from "node:path";
import { describe } from "vitest";
import { systemClock } from "../../src/ambient/clock.ts";
import { createLog } from "../../src/ambient/log.ts";
import { createMetrics } from "../../src/ambient/metrics.ts";
import { createSystemRandom } from "../../src/ambient/random.ts";
import { openPostgresStore } from "../../src/store/postgres/open-postgres-store.ts";
import { openSqliteStore } from "../../src/store/sqlite/open-sqlite-store.ts";
import { createMemoryStore } from "../support/memory-store.ts";
import { tempFolder } from "../support/temp-folder.ts";
import { createTestDatabase, hasPostgres } from "../support/test-database.ts";
import { createLayeredStore } from "./layered-store.ts";
import { checkedStoreContract, describeStoreContract } from "./store-contract.ts";

const ambient = () => ({ metrics: createMetrics(), random: createSystemRandom() });

describeStoreContract("memory", async (clock) => createMemoryStore(clock));

describeStoreContract(
  "layered",
  async (clock) => createLayeredStore(createMemoryStore(clock), clock),
  checkedStoreContract,
);

describeStoreContract("SQLite", (clock) =>
  openSqliteStore({
    file: join(tempFolder(), "latchkey.db"),
    clock,
    // Windows go by the test's clock, also when it is set.
    windowClock: clock,
    ...ambient(),
    log: createLog("error", () => {}),
    onDeath: (cause) => {
      throw cause;
    },
  }),
);

describe.runIf(hasPostgres)("with a server", () => {
  describeStoreContract("Postgres", async (clock) =>
    openPostgresStore({
      url: await createTestDatabase(),
      connectionsMax: 4,
      lanes: 2,
      // However busy the machine is: the contract is not about time.
      usageTimeoutMs: 20_000,
      clock: systemClock,
      // The refills must happen when the test says so, not when the database does.
      ledgerClock: clock,
      ...ambient(),
    }),
  );
});
