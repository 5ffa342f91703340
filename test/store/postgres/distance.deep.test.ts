import { setTimeout as delay } from "node:timers/promises";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Secret } from "../../../src/domain/secret.ts";
import { sampleKey } from "../../contract/sample-keys.ts";
import { through } from "../../faults/postgres/lane-fixture.ts";
import { createSurely } from "../../support/create-surely.ts";
import { FaultyProxy } from "../../support/faulty-proxy.ts";
import { startTestServer } from "../../support/in-process-server.ts";
import { createKey } from "../../support/manage.ts";
import { openTestStore } from "../../support/open-test-store.ts";
import { rawClient } from "../../support/raw-client.ts";
import { TestClock } from "../../support/test-clock.ts";
import { hasPostgres } from "../../support/test-database.ts";
import { type SecuredPostgres, startSecuredPostgres } from "./secured-postgres.ts";

/** An answer that takes this long nearby takes a few milliseconds on an idle machine. */
const busyMs = 50;

describe.runIf(hasPostgres)("a database far away, with TLS and a password", () => {
  let postgres: SecuredPostgres;
  beforeAll(async () => {
    postgres = await startSecuredPostgres();
  });
  afterAll(() => postgres?.remove());

  /** A new database, and the same one over a link that takes so long there and back. */
  async function farDatabase(roundTripMs: number) {
    const url = await postgres.url(`?sslmode=verify-full&sslrootcert=${postgres.rightCa}`);
    const direct = await openTestStore({ url });
    const proxy = await FaultyProxy.start(Number(new URL(url).port));
    const setDelay = () => {
      proxy.delayMs = roundTripMs / 2;
    };
    return { url, direct, farUrl: through(url, proxy.port), setDelay };
  }

  /** The longest that the database takes to answer over a link without delay, while `act` runs. */
  async function slowestNearbyMs(act: () => Promise<unknown>): Promise<number> {
    const client = new pg.Client({ connectionString: postgres.server.url() });
    await client.connect();
    let isOver = false;
    let slowestMs = 0;
    const acting = act().finally(() => {
      isOver = true;
    });
    while (!isOver) {
      const askedMs = performance.now();
      await client.query("SELECT 1");
      slowestMs = Math.max(slowestMs, performance.now() - askedMs);
      await delay(10);
    }
    await client.end();
    await acting;
    return slowestMs;
  }

  /** As `verifyFrom`, on a machine that has time for it: what others delay says nothing about the distance. */
  async function verifyUndisturbed(roundTripMs: number) {
    for (;;) {
      let result = { outcomes: new Set<string>(), undecided: [] as string[] };
      const slowestMs = await slowestNearbyMs(async () => {
        result = await verifyFrom(roundTripMs);
      });
      if (result.undecided.length === 0 || slowestMs < busyMs) return result;
      console.log(`once more: a database nearby took ${Math.round(slowestMs)} ms to answer`);
    }
  }

  /** What came of verifications of keys with and without counter, while others are created, and why some were undecided. */
  async function verifyFrom(roundTripMs: number): Promise<{ outcomes: Set<string>; undecided: string[] }> {
    const { farUrl, setDelay } = await farDatabase(roundTripMs);
    setDelay();
    // Nothing is remembered: every verification is a look-up.
    const settings = {
      databaseUrl: new Secret(farUrl),
      cacheTtlMs: 0,
      usageTimeoutMs: 235,
      databaseConnectionsMax: 10,
    };
    const server = await startTestServer({ settings });
    const client = rawClient(server).keys;
    const create = (properties = {}) => createSurely(client, { apiId: "api", ...properties });
    const keys = await Promise.all([create(), create(), create({ remaining: 1000 }), create({ remaining: 1000 })]);
    const creating = Promise.all(Array.from({ length: 4 }, () => create()));
    const outcomes: string[] = [];
    const verify = async ({ key }: { key: string }) => {
      for (let i = 0; i < 3; i++) {
        const outcome = client.verifyKey({ key }).then(
          ({ code }) => code as string,
          (error: Error) => error.message,
        );
        outcomes.push(await outcome);
      }
    };
    await Promise.all(Array.from({ length: 5 }, () => keys.map(verify)).flat());
    await creating;
    expect(outcomes).toHaveLength(60);
    const undecided = server.logLines.filter((line) => line.includes("could not be decided"));
    return { outcomes: new Set(outcomes), undecided };
  }

  it("answers every verification at 40, 80 and 160 ms, also while keys are created", async () => {
    const results = await Promise.all([40, 80, 160].map(verifyUndisturbed));
    expect(results).toEqual(results.map(() => ({ outcomes: new Set(["VALID"]), undecided: [] })));
  });

  it("answers a burst of look-ups at 160 ms after it was idle: connections stay open", async () => {
    const { url, direct, farUrl, setDelay } = await farDatabase(160);
    const keys = Array.from({ length: 20 }, () => sampleKey(new TestClock()));
    await Promise.all(keys.map((key) => createKey(direct.management, key)));
    const store = await openTestStore({ url: farUrl, connectionsMax: 10, lanes: 0 });
    const open = async () => {
      const text = `SELECT count(*)::int AS open FROM pg_stat_activity WHERE datname = '${new URL(url).pathname.slice(1)}'`;
      return (await postgres.server.query(text)).rows[0].open as number;
    };
    const ofDirect = 4 + 4;
    while ((await open()) < ofDirect + 10) await delay(20);
    setDelay();
    const find = async (digest: string) => store.keys.findByDigest(digest);
    for (let i = 0; i < 3; i++) {
      const found: Promise<unknown>[] = [];
      for (const { secretDigest } of keys) {
        found.push(find(secretDigest));
        await new Promise((resolve) => setImmediate(resolve));
      }
      expect(await Promise.all(found)).not.toContain(undefined);
    }
  });
});
