import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { redisTimeoutMs } from "../../../src/ratelimit/redis/locate-server.ts";
import type { KeysClient } from "../../../src/sdk/index.ts";
import { admittedOf, type LoggedAnswer, latenciesOf, oddAnswers } from "../../support/answer-log.ts";
import { type LinkedFleet, startLinkedFleet } from "../../support/linked-fleet.ts";
import { pacedLoad } from "../../support/paced-load.ts";
import { rawClient } from "../../support/raw-client.ts";
import { readMetric } from "../../support/read-metric.ts";
import { RedisServer } from "../../support/redis-server.ts";
import { rememberKey } from "../../support/remember-key.ts";
import { settles } from "../../support/settles.ts";
import { createTestDatabase, hasPostgres } from "../../support/test-database.ts";
import { hasRedis } from "../../support/test-redis.ts";
import { testRootKey } from "../../support/test-root-key.ts";
import { replicasOverLimit } from "../../support/window-log.ts";

const replicas = 3;
/** Of the key under load. One replica is asked for twice as much: alone, each would let the whole limit pass. */
const rule = { limit: 50, durationMs: 1000 };
const perSecond = 300;
/** Of the key that is used up: more than one replica is asked for while it learns that nothing is left. */
const usedUp = 100;
/** They are after a few ticks of 100 ms. A starved machine takes longer; without a link it would be never. */
const inStepMs = 6000;
/** A new connection is tried at least every second. */
const backMs = 4000;

/** Replicas, their Redis and the links between. */
class LinkedReplicas {
  readonly redis: RedisServer;
  readonly fleet: LinkedFleet["fleet"];
  readonly #links: LinkedFleet["links"];
  readonly #clients: readonly KeysClient[];

  private constructor(redis: RedisServer, { fleet, links }: LinkedFleet) {
    this.redis = redis;
    this.fleet = fleet;
    this.#links = links;
    this.#clients = fleet.baseUrls.map((baseUrl) => rawClient({ baseUrl, rootKey: testRootKey }).keys);
  }

  static async start(atEnd: (undo: () => unknown) => void): Promise<LinkedReplicas> {
    const redis = await RedisServer.start();
    atEnd(() => redis.remove());
    const roundTripsMs = Array.from({ length: replicas }, () => 0);
    const linked = await startLinkedFleet({ databaseUrl: await createTestDatabase(), redis, roundTripsMs, atEnd });
    const started = new LinkedReplicas(redis, linked);
    await started.linksAre(1, [0, 1, 2]);
    // Not to measure how processes begin.
    const key = await started.createKey(1000, 60_000);
    await pacedLoad({ baseUrls: started.fleet.baseUrls, key, perSecond: 150, ms: 1000 });
    return started;
  }

  client(replica: number): KeysClient {
    return this.#clients[replica] as KeysClient;
  }

  link(replica: number): LinkedFleet["links"][number] {
    return this.#links[replica] as LinkedFleet["links"][number];
  }

  async createKey(limit: number, duration: number): Promise<string> {
    const { key } = await this.client(0).createKey({ apiId: "api", ratelimit: { limit, duration } });
    await rememberKey(this.#clients, key);
    return key;
  }

  /** Waits until both gauges of these replicas say so. */
  async linksAre(up: 0 | 1, of: readonly number[]): Promise<void> {
    for (const replica of of) {
      const port = Number(new URL(this.fleet.replica(replica).internalUrl).port);
      for (const gauge of ["latchkey_rate_limit_sync_up", "latchkey_key_changes_up"]) {
        await settles(() => readMetric(port, gauge), up, backMs);
      }
    }
  }

  async useUp(replica: number, key: string): Promise<void> {
    for (let i = 0; i < usedUp; i++) expect((await this.client(replica).verifyKey({ key })).code).toBe("VALID");
    expect((await this.client(replica).verifyKey({ key })).code).toBe("RATE_LIMITED");
  }

  /** How long a replica goes on letting a key pass that it has hardly used; undefined when it does not stop. */
  async timeToRefusal(replica: number, key: string, withinMs: number): Promise<number | undefined> {
    const startMs = performance.now();
    // Fewer uses than its own limit: if it refuses, it knows of the others'.
    for (let uses = 0; uses < usedUp / 2 && performance.now() - startMs < withinMs; uses++) {
      if ((await this.client(replica).verifyKey({ key })).code === "RATE_LIMITED") return performance.now() - startMs;
      await delay(withinMs / (usedUp / 2));
    }
    return undefined;
  }

  /** Loads every replica while `fault` runs, and checks the answers against the promises. */
  async underLoad(fault: () => Promise<void>): Promise<LoggedAnswer[]> {
    const key = await this.createKey(rule.limit, rule.durationMs);
    let isOver = false;
    const loaded = pacedLoad({ baseUrls: this.fleet.baseUrls, key, perSecond, ms: 30_000 }, () => isOver);
    try {
      await delay(500);
      await fault();
      await delay(200);
    } finally {
      isOver = true;
    }
    const log = await loaded;
    expect(oddAnswers(log)).toEqual([]);
    // Callers that waited for Redis would wait until that is given up on. A busy machine makes some of them wait as long.
    const latencies = latenciesOf(log);
    expect(latencies[latencies.length >> 1]).toBeLessThan(redisTimeoutMs / 2);

    expect(replicasOverLimit(log, rule)).toEqual([]);
    const spanMs = Math.max(...log.map(({ answeredMs }) => answeredMs)) - Math.min(...log.map(({ sentMs }) => sentMs));
    const windowsMax = Math.floor(spanMs / rule.durationMs) + 1;
    expect(admittedOf(log).length).toBeLessThanOrEqual(replicas * rule.limit * windowsMax);
    return log;
  }
}

// The tests of one fleet one after the other, and those of two fleets at once: they mostly wait.
const inTurn = { concurrent: false };

describe.runIf(hasPostgres && hasRedis)(`${replicas} replicas under load`, () => {
  const undo: (() => unknown)[] = [];
  const atEnd = (step: () => unknown) => void undo.push(step);
  let first: LinkedReplicas;
  let second: LinkedReplicas;
  beforeAll(async () => {
    [first, second] = await Promise.all([LinkedReplicas.start(atEnd), LinkedReplicas.start(atEnd)]);
  });
  afterAll(async () => {
    for (const step of undo.reverse()) await step();
  });

  describe.concurrent("in an outage", () => {
    const outages: {
      name: string;
      begin: (on: LinkedReplicas) => unknown;
      end: (on: LinkedReplicas) => unknown;
      away: number[];
    }[] = [
      { name: "Redis is killed", begin: (on) => on.redis.kill(), end: (on) => on.redis.restart(), away: [0, 1, 2] },
      { name: "Redis hangs", begin: (on) => on.redis.pause(), end: (on) => on.redis.resume(), away: [0, 1, 2] },
      {
        name: "one link falls silent",
        begin: (on) => {
          on.link(0).silent = true;
        },
        end: (on) => {
          on.link(0).silent = false;
        },
        away: [0],
      },
      {
        name: "one link is cut and refuses",
        begin: (on) => {
          on.link(0).refusing = true;
          on.link(0).cutAll();
        },
        end: (on) => {
          on.link(0).refusing = false;
        },
        away: [0],
      },
    ];
    it.each(outages)(
      "go on by themselves while $name, and are in step again after it",
      inTurn,
      async ({ begin, end, away }) => {
        const on = first;
        const log = await on.underLoad(async () => {
          const key = await on.createKey(usedUp, 60_000);
          const beganMs = performance.now();
          await begin(on);
          // Before they notice: reports under way must be sent again.
          await on.useUp(0, key);
          await on.linksAre(0, away);
          await on.linksAre(
            1,
            [0, 1, 2].filter((replica) => !away.includes(replica)),
          );
          expect((await on.client(1).verifyKey({ key })).code).toBe("VALID");
          expect(await on.timeToRefusal(1, key, 500)).toBeUndefined();
          // Long enough for a window that no other replica learns of.
          await delay(beganMs + 1.8 * rule.durationMs - performance.now());

          await end(on);
          await on.linksAre(1, away);
          // Without another use on the replica that was away.
          expect(await on.timeToRefusal(2, key, inStepMs)).toBeLessThan(inStepMs);
          expect(await on.timeToRefusal(1, key, inStepMs)).toBeLessThan(inStepMs);
        });
        // Control: checked against half of the limit, every replica that was alone is found over it.
        expect(replicasOverLimit(log, { ...rule, limit: rule.limit / 2 })).toEqual(expect.arrayContaining(away));
      },
    );
  });

  describe.concurrent("whatever becomes of their windows", () => {
    it("are in step again after Redis has lost its data", inTurn, async () => {
      const on = second;
      await on.underLoad(async () => {
        const key = await on.createKey(usedUp, 60_000);
        await on.useUp(0, key);
        await delay(300);
        await on.redis.flush();
        expect(await on.timeToRefusal(1, key, inStepMs)).toBeLessThan(inStepMs);
        for (let i = 0; i < 10; i++) {
          await on.redis.flush();
          await delay(50);
        }
        expect(await on.timeToRefusal(2, key, inStepMs)).toBeLessThan(inStepMs);
      });
    });

    it("keep to their own windows when they join one that ends sooner", inTurn, async () => {
      const on = second;
      const own = { limit: 20, durationMs: 3000 };
      const key = await on.createKey(own.limit, own.durationMs);
      const { ratelimit: opened } = await on.client(1).verifyKey({ key });
      await delay(400);
      on.link(0).refusing = true;
      on.link(0).cutAll();
      await on.linksAre(0, [0]);
      // Uses the limit up at once, in a window that began later, and goes on until that one is over.
      const loaded = pacedLoad({ baseUrls: [on.fleet.replica(0).baseUrl], key, perSecond: 100, ms: 3600 });
      await delay(300);
      on.link(0).refusing = false;
      await on.linksAre(1, [0]);
      expect(Date.now()).toBeLessThan((opened?.reset ?? 0) - 300);
      const log = await loaded;
      expect(oddAnswers(log)).toEqual([]);
      expect(replicasOverLimit(log, own)).toEqual([]);
      expect(admittedOf(log).length).toBeGreaterThan(own.limit);
    });

    it("do not learn of each other if no link comes back: the tests above can fail", inTurn, async () => {
      const on = second;
      const key = await on.createKey(usedUp, 60_000);
      on.link(1).refusing = true;
      on.link(1).cutAll();
      await on.useUp(0, key);
      expect(await on.timeToRefusal(2, key, inStepMs)).toBeLessThan(inStepMs);
      expect(await on.timeToRefusal(1, key, 2000)).toBeUndefined();
    });
  });
});
