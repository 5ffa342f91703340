import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it, vi } from "vitest";
import { Secret } from "../../../src/domain/secret.ts";
import { FaultyProxy } from "../../support/faulty-proxy.ts";
import { startTestServer, type TestServer } from "../../support/in-process-server.ts";
import { rawClient } from "../../support/raw-client.ts";
import { readMetric } from "../../support/read-metric.ts";
import { createTestDatabase, hasPostgres } from "../../support/test-database.ts";
import { hasRedis, startTestRedis } from "../../support/test-redis.ts";

/* One round, however long it takes. outage.deep.test.ts has more of them, under load, and what has to be in time. */

const limit = 60;
/** One window is longer than the test: whatever passes is counted in it. */
const ratelimit = { limit, duration: 3_600_000 };

interface Replica {
  readonly server: TestServer;
  readonly link: FaultyProxy;
  readonly keys: ReturnType<typeof rawClient>["keys"];
}

/** Replicas on one database and one Redis, which each of them reaches over a link of its own. */
async function start() {
  const redis = await startTestRedis();
  const databaseUrl = new Secret(await createTestDatabase());
  const startReplica = async (): Promise<Replica> => {
    const link = await FaultyProxy.start(redis.port);
    const redisUrl = new Secret(`redis://127.0.0.1:${link.port}`);
    const server = await startTestServer({ settings: { databaseUrl, redisUrl } });
    return { server, link, keys: rawClient(server).keys };
  };
  const replicas = [await startReplica(), await startReplica(), await startReplica()] as const;
  for (const replica of replicas) await linkIs(1, replica);
  return { redis, replicas };
}

/** Waits until both gauges of this replica say so. */
async function linkIs(up: 0 | 1, { server }: Replica): Promise<void> {
  for (const gauge of ["latchkey_rate_limit_sync_up", "latchkey_key_changes_up"]) {
    await vi.waitFor(async () => expect(await readMetric(server.internalPort, gauge)).toBe(up));
  }
}

async function passedOf({ keys }: Replica, key: string, calls: number): Promise<number> {
  let passed = 0;
  for (let i = 0; i < calls; i++) if ((await keys.verifyKey({ key })).code === "VALID") passed++;
  return passed;
}

/** Uses a replica, more and more slowly, until it refuses. It is asked for less than its own limit: so it knows of the others. */
async function isRefused(replica: Replica, key: string): Promise<boolean> {
  for (let uses = 1; uses < limit; uses++) {
    if ((await passedOf(replica, key, 1)) === 0) return true;
    await delay(uses < limit / 2 ? 30 : 2000);
  }
  return false;
}

describe.runIf(hasPostgres && hasRedis)("3 replicas whose Redis is killed and comes back", () => {
  it("each let their own limit pass and no more, and are in step again, except one whose link stays cut", async () => {
    const { redis, replicas } = await start();
    const [first, second, third] = replicas;
    const { key } = await first.keys.createKey({ apiId: "api", ratelimit });
    expect(await passedOf(first, key, limit / 2)).toBe(limit / 2);

    await redis.kill();
    for (const replica of replicas) await linkIs(0, replica);
    expect(await passedOf(first, key, 2 * limit)).toBe(limit / 2);
    // It may have heard of the first one's before.
    const bySecond = await passedOf(second, key, 2 * limit);
    expect(bySecond).toBeGreaterThanOrEqual(limit / 2);
    expect(bySecond).toBeLessThanOrEqual(limit);

    await redis.restart();
    for (const replica of replicas) await linkIs(1, replica);
    // Without another use on the two that let it pass.
    expect(await isRefused(third, key)).toBe(true);

    // The control: a link that does not come back.
    second.link.refusing = true;
    second.link.cutAll();
    const other = await first.keys.createKey({ apiId: "api", ratelimit });
    expect(await passedOf(first, other.key, 2 * limit)).toBe(limit);
    expect(await isRefused(third, other.key)).toBe(true);
    expect(await passedOf(second, other.key, 2 * limit)).toBe(limit);
  });
});
