import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createClient, type KeysClient } from "../../../src/sdk/index.ts";
import type { Fleet } from "../../support/fleet.ts";
import { type LinkedFleet, startLinkedFleet } from "../../support/linked-fleet.ts";
import { lastOldMs, watchedChanges } from "../../support/news/key-changes.ts";
import { readMetric } from "../../support/read-metric.ts";
import { RedisServer } from "../../support/redis-server.ts";
import { rememberKey } from "../../support/remember-key.ts";
import { settles } from "../../support/settles.ts";
import { createTestDatabase, hasPostgres } from "../../support/test-database.ts";
import { hasRedis } from "../../support/test-redis.ts";
import { testRootKey } from "../../support/test-root-key.ts";

/** What the documentation promises, with Redis and without. */
const seenMs = 1000;
const seenByFeedMs = 2000;
/** A new connection is tried at least every second. */
const backMs = 4000;
/** For an answer to come, on a busy machine. */
const answerMs = 250;

const undo: (() => unknown)[] = [];
const atEnd = (step: () => unknown) => void undo.push(step);

function clientsOf(fleet: Fleet): readonly KeysClient[] {
  return fleet.baseUrls.map((baseUrl) => createClient({ baseUrl, rootKey: testRootKey }).keys);
}

async function changesAre(up: 0 | 1, fleet: Fleet, of = fleet.baseUrls.map((_, i) => i)): Promise<void> {
  for (const replica of of) {
    const port = Number(new URL(fleet.replica(replica).internalUrl).port);
    await settles(() => readMetric(port, "latchkey_key_changes_up"), up, backMs);
  }
}

/**
 * Uses a key on every replica without a break, deletes it on the first, and answers how long after the deletion was
 * answered each of them last called it valid, by the time of that answer; below 0: never. `meanwhile` begins with the
 * deletion; callers go on until it has ended and for `ms` after the deletion.
 */
async function lastValidMs(fleet: Fleet, ms: number, meanwhile = async () => {}): Promise<number[]> {
  const clients = clientsOf(fleet);
  const [first] = clients as [KeysClient];
  const { key, keyId } = await first.createKey({ apiId: "api" });
  await rememberKey(clients, key);
  let isOver = false;
  const watching = clients.map(async (client) => {
    let lastMs = Number.NEGATIVE_INFINITY;
    while (!isOver) {
      const { code } = await client.verifyKey({ key }).catch(() => ({ code: "UNDECIDED" }));
      if (code === "VALID") lastMs = performance.now();
      await delay(5);
    }
    return lastMs;
  });
  await delay(200);
  await first.deleteKey({ keyId });
  const deletedMs = performance.now();
  await Promise.all([meanwhile(), delay(ms)]);
  isOver = true;
  return (await Promise.all(watching)).map((lastMs) => lastMs - deletedMs);
}

describe.runIf(hasPostgres && hasRedis)("a key deleted on one of several replicas", () => {
  let redis: RedisServer;
  let linked: LinkedFleet;
  beforeAll(async () => {
    redis = await RedisServer.start();
    atEnd(() => redis.remove());
    linked = await startLinkedFleet({
      databaseUrl: await createTestDatabase(),
      redis,
      roundTripsMs: [0, 0, 0],
      atEnd,
    });
    await changesAre(1, linked.fleet);
  });
  afterAll(async () => {
    for (const step of undo.reverse()) await step();
  });

  it.each([0, 80])("is refused by all of them within a second, %i ms from Redis", async (roundTripMs) => {
    for (const link of linked.links) link.delayMs = roundTripMs / 2;
    try {
      const keys = await Promise.all([0, 1, 2].map(() => lastValidMs(linked.fleet, seenMs + answerMs)));
      const lastMs = keys.flat();
      console.log(`last called valid ${lastMs.map(Math.round).join(", ")} ms after the deletion was answered`);
      expect(Math.max(...lastMs)).toBeLessThan(seenMs);
      // All of them had it in memory, or this would have shown nothing.
      expect(Math.min(...lastMs)).toBeGreaterThan(-answerMs);
    } finally {
      for (const link of linked.links) link.delayMs = 0;
    }
  });

  it("or changed in any other way, is as it is now on the one that was asked, and on all others within a second", async () => {
    const clients = clientsOf(linked.fleet);
    const found = await Promise.all(watchedChanges.map((change) => lastOldMs(clients, change, seenMs + answerMs)));
    for (const [i, [here, ...others]] of found.entries()) {
      const name = watchedChanges[i]?.name;
      console.log(
        `${name}: last as before ${[here, ...others].map((ms) => Math.round(ms as number)).join(", ")} ms after`,
      );
      expect([name, here]).toEqual([name, expect.toSatisfy((ms: number) => ms < 0)]);
      expect([name, others]).toEqual([name, expect.toSatisfy((all: number[]) => Math.max(...all) < seenMs)]);
    }
  });

  const cuts: [string, number][] = [
    ["that it was deleted on", 0],
    ["that should have heard of it", 1],
  ];
  it.each(cuts)(
    "is refused by all within two seconds while the replica %s is cut off from Redis",
    async (_, cutOff) => {
      const link = linked.links[cutOff] as LinkedFleet["links"][number];
      link.refusing = true;
      link.cutAll();
      await changesAre(0, linked.fleet, [cutOff]);
      const lastMs = await lastValidMs(linked.fleet, seenByFeedMs + answerMs);
      expect(Math.max(...lastMs)).toBeLessThan(seenByFeedMs);
      link.refusing = false;
      await changesAre(1, linked.fleet);
    },
  );

  it("is refused by all although its replica's connections to Redis were lost without an error", async () => {
    const link = linked.links[0] as LinkedFleet["links"][number];
    link.abandonAll();
    try {
      // The deletion is answered when it is clear that Redis cannot carry the message: the others know already.
      const lastMs = await lastValidMs(linked.fleet, seenByFeedMs + answerMs);
      expect(Math.max(...lastMs)).toBeLessThan(seenByFeedMs);
    } finally {
      link.cutAll();
    }
  });

  it("is refused by all within two seconds while Redis is away, and a gauge tells that", async () => {
    await redis.kill();
    await changesAre(0, linked.fleet);
    const [here, ...others] = await lastValidMs(linked.fleet, seenByFeedMs + answerMs);
    await redis.restart();
    expect(here).toBeLessThan(answerMs);
    for (const lastMs of others) expect(lastMs).toBeLessThan(seenByFeedMs);
    await changesAre(1, linked.fleet);
  });
});
