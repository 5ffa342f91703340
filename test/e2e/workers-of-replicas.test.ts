import { describe, expect, it, vi } from "vitest";
import { isDeep, sized } from "../support/deep.ts";
import { startLatchkey } from "../support/latchkey-process.ts";
import { crowd, openConnections, type VerifyOverOne } from "../support/open-connections.ts";
import { tempFolder } from "../support/temp-folder.ts";
import { createTestDatabase, hasPostgres } from "../support/test-database.ts";
import { createRedisDatabase, hasRedis } from "../support/test-redis.ts";
import { testInternalSecret, testRootKey } from "../support/test-root-key.ts";
import { connections, expectAllServe, start, workers } from "./start-workers.ts";

describe.runIf(hasRedis && hasPostgres)(`replicas of ${workers} workers each`, () => {
  it("learn of each other's windows and deleted keys", async () => {
    const [DATABASE_URL, REDIS_URL] = [await createTestDatabase(), await createRedisDatabase()];
    const replicas = await Promise.all(
      [1, 2].map(() => start({ DATABASE_URL, LATCHKEY_DATA_DIR: tempFolder(), REDIS_URL })),
    );
    const [here, there] = replicas as [(typeof replicas)[0], (typeof replicas)[0]];
    const limit = 30;
    const { key, keyId } = await here.client.createKey({ apiId: "api", ratelimit: { limit, duration: 60_000 } });
    const [callersHere, callersThere] = [here, there].map(({ baseUrl }) => openConnections(baseUrl, connections)) as [
      readonly VerifyOverOne[],
      readonly VerifyOverOne[],
    ];
    const passed = (await crowd(callersHere, key, 2)).filter(({ valid }) => valid).length;
    expect(passed).toBeGreaterThan(0);
    expect(passed).toBeLessThanOrEqual(workers * limit);
    // The first worker asks; then all of them learn the answer.
    await there.client.verifyKey({ key });
    let passedThere = 1;
    await vi.waitFor(async () => {
      const answers = await crowd(callersThere, key, 1);
      passedThere += answers.filter(({ valid }) => valid).length;
      expect(new Set(answers.map(({ code }) => code))).toEqual(new Set(["RATE_LIMITED"]));
    });
    // Alone, each of the workers would let the whole limit pass.
    expect(passedThere).toBeLessThan(sized(Number.POSITIVE_INFINITY, workers * limit));

    await here.client.deleteKey({ keyId });
    await vi.waitFor(
      async () => {
        const deleted = await crowd(callersThere, key, 1);
        expect(new Set(deleted.map(({ code }) => code))).toEqual(new Set(["NOT_FOUND"]));
      },
      { timeout: sized(60_000, 1000) },
    );
    await expectAllServe(there);
  });
});

if (!isDeep) {
  describe.runIf(hasPostgres)(`an edge of ${workers} workers`, () => {
    it("gets the permits of strict limits from its coordinators, and lets exactly the limit pass", async () => {
      const DATABASE_URL = await createTestDatabase();
      const coordinator = await startLatchkey({
        DATABASE_URL,
        LATCHKEY_DATA_DIR: tempFolder(),
        LATCHKEY_ROLE: "coordinator",
        LATCHKEY_ROOT_KEY: testRootKey,
        LATCHKEY_INTERNAL_SECRET: testInternalSecret,
      });
      const edge = await start({
        LATCHKEY_DATA_DIR: tempFolder(),
        LATCHKEY_ROLE: "edge",
        LATCHKEY_ROOT_KEY: "",
        LATCHKEY_INTERNAL_SECRET: testInternalSecret,
        LATCHKEY_COORDINATORS: new URL(coordinator.internalUrl).host,
      });
      const limit = 50;
      const ratelimit = { async: false, limit, duration: 60_000 };
      const { key } = await edge.client.createKey({ apiId: "api", ratelimit });
      const answers = await crowd(openConnections(edge.baseUrl, connections), key, 4);
      await expectAllServe(edge);

      expect(answers.filter(({ valid }) => valid)).toHaveLength(limit);
    });
  });
}
