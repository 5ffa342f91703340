import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe } from "vitest";
import { systemClock } from "../../src/ambient/clock.ts";
import { createLog } from "../../src/ambient/log.ts";
import { createMetrics } from "../../src/ambient/metrics.ts";
import { createSystemRandom } from "../../src/ambient/random.ts";
import { openPostgresStore } from "../../src/store/postgres/open-postgres-store.ts";
import { openSqliteStore } from "../../src/store/sqlite/open-sqlite-store.ts";
import { isDeep } from "../support/deep.ts";
import { createMemoryStore } from "../support/memory-store.ts";
import { tempFolder } from "../support/temp-folder.ts";
import { createSharedDatabase, hasPostgres } from "../support/test-database.ts";
import { agreementCase } from "./agreement-case.ts";
import { createLayeredStore } from "./layered-store.ts";
import { permitAgreementCase } from "./permit-agreement-case.ts";
import { rememberRows, reused } from "./reused-store.ts";
import { checkedStoreContract, describeStoreContract, storeContract } from "./store-contract.ts";

/** At full size only what has sizes. */
const cases = isDeep ? [agreementCase, permitAgreementCase] : storeContract;

const ambient = () => ({ metrics: createMetrics(), random: createSystemRandom() });

describeStoreContract("memory", async (clock) => createMemoryStore(clock), cases);

describeStoreContract(
  "layered",
  async (clock) => createLayeredStore(createMemoryStore(clock), clock),
  isDeep ? cases : checkedStoreContract,
);

const file = join(tempFolder(afterAll), "latchkey.db");

describeStoreContract(
  "SQLite",
  reused(
    (clock) =>
      openSqliteStore({
        file,
        clock,
        // Windows go by the test's clock, also when it is set.
        windowClock: clock,
        ...ambient(),
        log: createLog("error", () => {}),
        onDeath: (cause) => {
          throw cause;
        },
      }),
    () => rememberRows(file),
  ),
  cases,
);

describe.runIf(hasPostgres)("with a server", () => {
  let database: Awaited<ReturnType<typeof createSharedDatabase>>;
  beforeAll(async () => {
    database = await createSharedDatabase();
  });

  beforeEach(() => database.reset());

  describeStoreContract(
    "Postgres",
    reused((clock) =>
      openPostgresStore({
        url: database.url,
        connectionsMax: 4,
        lanes: 2,
        // However busy the machine is: the contract is not about time.
        usageTimeoutMs: 20_000,
        clock: systemClock,
        // The refills must happen when the test says so, not when the database does.
        ledgerClock: clock,
        ...ambient(),
      }),
    ),
    cases,
  );
});
