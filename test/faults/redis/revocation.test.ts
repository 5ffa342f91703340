import { afterAll, beforeAll, describe, it } from "vitest";
import { isDeep, sized } from "../../support/deep.ts";
import type { Fleet } from "../../support/fleet.ts";
import { type LinkedFleet, startLinkedFleet } from "../../support/linked-fleet.ts";
import { deletion, expectInForce } from "../../support/news/watched-changes.ts";
import { readMetric } from "../../support/read-metric.ts";
import { RedisServer } from "../../support/redis-server.ts";
import { settles } from "../../support/settles.ts";
import { createTestDatabase, hasPostgres } from "../../support/test-database.ts";
import { hasRedis } from "../../support/test-redis.ts";

/** At full size what the documentation promises, with Redis and without. */
const seenMs = sized(60_000, 1000);
const seenByFeedMs = sized(60_000, 2000);
/** A new connection is tried at least every second. */
const backMs = sized(60_000, 4000);
const inTime = sized("", " within a second");
const inTimeByFeed = sized("", " within two seconds");

const undo: (() => unknown)[] = [];
const atEnd = (step: () => unknown) => void undo.push(step);

async function changesAre(up: 0 | 1, fleet: Fleet, of = fleet.baseUrls.map((_, i) => i)): Promise<void> {
  for (const replica of of) {
    const port = Number(new URL(fleet.replica(replica).internalUrl).port);
    await settles(() => readMetric(port, "latchkey_key_changes_up"), up, backMs);
  }
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

  if (isDeep) {
    it.each([0, 80])("is refused by all of them within a second, %i ms from Redis", async (roundTripMs) => {
      for (const link of linked.links) link.delayMs = roundTripMs / 2;
      try {
        await expectInForce(linked.fleet.baseUrls, seenMs, [deletion, deletion, deletion]);
      } finally {
        for (const link of linked.links) link.delayMs = 0;
      }
    });
  }

  it(`or changed in any other way, and a root key too, is as it is now on the one that was asked, and on all others${inTime}`, async () => {
    await expectInForce(linked.fleet.baseUrls, seenMs);
  });

  const cuts: [string, number][] = [
    ["that it was deleted on", 0],
    ["that should have heard of it", 1],
  ];
  it.each(cuts)(`is refused by all${inTimeByFeed} while the replica %s is cut off from Redis`, async (_, cutOff) => {
    const link = linked.links[cutOff] as LinkedFleet["links"][number];
    link.refusing = true;
    link.cutAll();
    await changesAre(0, linked.fleet, [cutOff]);
    await expectInForce(linked.fleet.baseUrls, seenByFeedMs, [deletion]);
    link.refusing = false;
    await changesAre(1, linked.fleet);
  });

  it("is refused by all although its replica's connections to Redis were lost without an error", async () => {
    const link = linked.links[0] as LinkedFleet["links"][number];
    link.abandonAll();
    try {
      // The deletion is answered when it is clear that Redis cannot carry the message: the others know already.
      await expectInForce(linked.fleet.baseUrls, seenByFeedMs, [deletion]);
    } finally {
      link.cutAll();
    }
  });

  it(`is refused by all${inTimeByFeed} while Redis is away, and a gauge tells that`, async () => {
    await redis.kill();
    await changesAre(0, linked.fleet);
    await expectInForce(linked.fleet.baseUrls, seenByFeedMs, [deletion]);
    await redis.restart();
    await changesAre(1, linked.fleet);
  });
});
