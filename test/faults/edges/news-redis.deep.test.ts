import { describe, it } from "vitest";
import { withRoom } from "../../support/deep.ts";
import { startLatchkey } from "../../support/latchkey-process.ts";
import { deletion, expectInForce } from "../../support/news/watched-changes.ts";
import { readMetric } from "../../support/read-metric.ts";
import { settles } from "../../support/settles.ts";
import { StrictCluster } from "../../support/strict/index.ts";
import { createTestDatabase, hasPostgres } from "../../support/test-database.ts";
import { createRedisDatabase, hasRedis } from "../../support/test-redis.ts";
import { testRootKey } from "../../support/test-root-key.ts";

/** What the documentation promises. */
const withinMs = withRoom(1000);
/** However busy the machine is. */
const settledMs = 60_000;

describe.runIf(hasPostgres && hasRedis)("a change made on one edge, with Redis everywhere", () => {
  it("is in force there at once and on each front within a second, also if a coordinator is killed right after a deletion", async () => {
    const [databaseUrl, REDIS_URL] = [await createTestDatabase(), await createRedisDatabase()];
    const cluster = await StrictCluster.start({
      edges: 2,
      coordinators: 2,
      databaseUrl,
      coordinatorEnvironment: { REDIS_URL },
      edgeEnvironment: () => ({ REDIS_URL }),
    });
    const replica = await startLatchkey({ DATABASE_URL: databaseUrl, LATCHKEY_ROOT_KEY: testRootKey, REDIS_URL });
    const fronts = [cluster.edge(0), cluster.edge(1), replica];
    for (const { internalUrl } of fronts) {
      await settles(() => readMetric(Number(new URL(internalUrl).port), "latchkey_key_changes_up"), 1, settledMs);
    }
    await cluster.untilConnected();

    const baseUrls = fronts.map(({ baseUrl }) => baseUrl);
    await expectInForce(baseUrls, withinMs);
    await expectInForce(baseUrls, withinMs, [deletion], () => cluster.coordinator(0).kill("SIGKILL"));
  });
});
