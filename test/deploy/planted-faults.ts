// Faults that are planted for real, each in a service of its own, with what it tells of itself before and during the fault.
import { once } from "node:events";
import { renameSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import https from "node:https";
import { join } from "node:path";
import { expect, vi } from "vitest";
import type { Settings } from "../../src/config/settings.ts";
import { Secret } from "../../src/domain/secret.ts";
import { composePublicApi } from "../support/compose-public-api.ts";
import { FaultyProxy } from "../support/faulty-proxy.ts";
import { startTestServer, type TestServer } from "../support/in-process-server.ts";
import { startLatchkey } from "../support/latchkey-process.ts";
import { identityOf, makeCertificate } from "../support/make-certificate.ts";
import { rawClient } from "../support/raw-client.ts";
import { sumMetric } from "../support/read-metric.ts";
import { tempFolder } from "../support/temp-folder.ts";
import { createTestDatabase } from "../support/test-database.ts";
import { atTestEnd } from "../support/test-end.ts";
import { startTestRedis } from "../support/test-redis.ts";
import { testInternalSecret, testRootKey } from "../support/test-root-key.ts";
import type { Scrape } from "./promtool-series.ts";

/** A fault, and the alerts that have to tell of it. */
export interface Fault {
  readonly alerts: readonly string[];
  /** Absent: the fault was there from the start. */
  readonly before?: Scrape;
  readonly after: Scrape;
}

const internalSecrets = [new Secret(testInternalSecret)];
const headers = { authorization: `Bearer ${testInternalSecret}` };
const window = { limit: 100, duration: 600_000 };

type Scraped = Pick<TestServer, "internalPort">;

export function start(settings: Partial<Settings> = {}): Promise<TestServer> {
  return startTestServer({ settings: { internalSecrets, ...settings } });
}

export async function scrape({ internalPort }: Scraped): Promise<Scrape> {
  const answer = await fetch(`http://127.0.0.1:${internalPort}/metrics`, { headers });
  return { text: await answer.text(), atUnixSeconds: Date.now() / 1000 };
}

export async function scrapeTls({ internalPort: port }: Scraped): Promise<Scrape> {
  const options = { host: "127.0.0.1", port, path: "/metrics", headers, rejectUnauthorized: false, agent: false };
  const [response] = (await once(https.get(options), "response")) as [IncomingMessage];
  return { text: (await response.toArray()).join(""), atUnixSeconds: Date.now() / 1000 };
}

/** Scrapes until each of these metrics has its value. */
async function scrapeWhen(server: Scraped, values: Readonly<Record<string, number>>): Promise<Scrape> {
  const isSo = async () => {
    const scraped = await scrape(server);
    for (const [name, value] of Object.entries(values)) expect(sumMetric(scraped.text, name), name).toBe(value);
    return scraped;
  };
  return vi.waitFor(isSo, { timeout: 60_000, interval: 50 });
}

export function keysOf({ baseUrl }: Pick<TestServer, "baseUrl">) {
  return rawClient({ baseUrl, rootKey: testRootKey }).keys;
}

/** Every call ends, however it does. */
export async function verifyAll(keys: ReturnType<typeof keysOf>, key: string, times: number): Promise<void> {
  await Promise.allSettled(Array.from({ length: times }, () => keys.verifyKey({ key })));
}

/** A database behind a link that can be broken. */
async function linkedDatabase(): Promise<{ databaseUrl: Secret; link: FaultyProxy }> {
  const url = new URL(await createTestDatabase());
  const link = await FaultyProxy.start(Number(url.port));
  url.port = String(link.port);
  return { databaseUrl: new Secret(url.href), link };
}

/** They mostly wait, and can be planted at the same time. */
export const faults: Readonly<Record<string, () => Promise<readonly Fault[]>>> = {
  async "too many calls"() {
    const server = await start({ callsMax: 1 });
    const keys = keysOf(server);
    const { key } = await keys.createKey({ apiId: "api", remaining: 100 });
    const before = await scrape(server);
    await verifyAll(keys, key, 20);
    return [{ alerts: ["LatchkeyLoadShed", "LatchkeyCallsUndecided"], before, after: await scrape(server) }];
  },

  async "too many rate limits"() {
    const server = await start({ windowsMax: 1 });
    const keys = keysOf(server);
    const limited = await Promise.all([0, 1].map(() => keys.createKey({ apiId: "api", ratelimit: window })));
    const before = await scrape(server);
    for (const { key } of limited) await verifyAll(keys, key, 1);
    return [{ alerts: ["LatchkeyWindowsFull"], before, after: await scrape(server) }];
  },

  async "a certificate near its end"() {
    const server = await start({ internalTls: identityOf(makeCertificate(tempFolder(), "internal")) });
    return [{ alerts: ["LatchkeyCertificateExpires"], after: await scrapeTls(server) }];
  },

  async "strangers at both ports"() {
    const server = await start();
    const before = await scrape(server);
    const { keys } = rawClient({ baseUrl: server.baseUrl, rootKey: "a-wrong-root-key-of-32-characters" });
    await Promise.allSettled(Array.from({ length: 30 }, () => keys.getKey({ keyId: "key_none" })));
    expect((await fetch(`http://127.0.0.1:${server.internalPort}/metrics`)).status).toBe(401);
    const alerts = ["LatchkeyRootKeysGuessed", "LatchkeyInternalPortRefused"];
    return [{ alerts, before, after: await scrape(server) }];
  },

  async "a mistake in the service"() {
    const random = {
      bytes(): never {
        throw new Error("a fault");
      },
    };
    const { onePort, metrics } = composePublicApi(() => ({ random }));
    const scrapeHere = async () => ({ text: await metrics.render(), atUnixSeconds: Date.now() / 1000 });
    const port = await onePort.listen(0, "127.0.0.1");
    atTestEnd(() => onePort.close(0));
    const before = await scrapeHere();
    await expect(fetch(`http://127.0.0.1:${port}/livez`)).rejects.toThrow();
    return [{ alerts: ["LatchkeyServingFailed"], before, after: await scrapeHere() }];
  },

  async "the data folder is gone"() {
    const dataDir = join(tempFolder(), "data");
    const server = await start({ dataDir });
    const before = await scrapeWhen(server, { latchkey_data_file_up: 1 });
    renameSync(dataDir, `${dataDir}-elsewhere`);
    return [
      { alerts: ["LatchkeyDataFileDown"], before, after: await scrapeWhen(server, { latchkey_data_file_up: 0 }) },
    ];
  },

  async "Redis is gone"() {
    const redis = await startTestRedis();
    const server = await start({ redisUrl: new Secret(`redis://127.0.0.1:${redis.port}`) });
    const bothAre = (value: number) => ({ latchkey_rate_limit_sync_up: value, latchkey_key_changes_up: value });
    const before = await scrapeWhen(server, bothAre(1));
    await redis.kill();
    return [{ alerts: ["LatchkeyRedisDown"], before, after: await scrapeWhen(server, bothAre(0)) }];
  },

  async "Postgres is slow, then silent, then gone"() {
    const { databaseUrl, link } = await linkedDatabase();
    const server = await start({ databaseUrl, usageTimeoutMs: 1000 });
    const keys = keysOf(server);
    const { key } = await keys.createKey({ apiId: "api", remaining: 1000 });
    await keys.verifyKey({ key });
    const before = await scrapeWhen(server, { latchkey_change_feed_up: 1, latchkey_database_up: 1 });
    link.delayMs = 200;
    await keys.verifyKey({ key });
    const slow = await scrape(server);
    link.silent = true;
    await verifyAll(keys, key, 1);
    const silent = await scrape(server);
    link.refusing = true;
    link.cutAll();
    const gone = await scrapeWhen(server, { latchkey_change_feed_up: 0, latchkey_database_up: 0 });
    return [
      { alerts: ["LatchkeyVerificationsSlow", "LatchkeyBatchesSlow"], before, after: slow },
      { alerts: ["LatchkeyLedgerGaveUp", "LatchkeyCallsUndecided"], before: slow, after: silent },
      { alerts: ["LatchkeyDatabaseDown", "LatchkeyChangeFeedDown"], before, after: gone },
    ];
  },

  async "the ledger's clock jumps"() {
    let aheadMs = 0;
    const ledgerClock = { nowMs: () => Date.now() + aheadMs };
    const databaseUrl = new Secret(await createTestDatabase());
    const server = await startTestServer({ settings: { internalSecrets, databaseUrl }, ledgerClock });
    const keys = keysOf(server);
    const { key } = await keys.createKey({ apiId: "api", remaining: 100 });
    await keys.verifyKey({ key });
    const before = await scrape(server);
    aheadMs = 60_000;
    await keys.verifyKey({ key });
    return [{ alerts: ["LatchkeyLedgerClockJumped"], before, after: await scrape(server) }];
  },

  async "an edge hangs, its coordinator loses the ledger, then it is gone"() {
    const { databaseUrl, link } = await linkedDatabase();
    const coordinator = await start({ role: "coordinator", databaseUrl });
    const coordinators = [`127.0.0.1:${coordinator.internalPort}`];
    const [edge, hanging] = await Promise.all([
      start({ role: "edge", coordinators }),
      startLatchkey({
        LATCHKEY_ROLE: "edge",
        LATCHKEY_COORDINATORS: coordinators.join(),
        LATCHKEY_INTERNAL_SECRET: testInternalSecret,
      }),
    ]);
    const keys = keysOf(edge);
    const { key } = await keys.createKey({ apiId: "api", ratelimit: { ...window, async: false } });
    const before = await scrapeWhen(edge, { latchkey_coordinator_ledger_up: 1 });
    const coordinatorBefore = await scrapeWhen(coordinator, { latchkey_permit_ledger_up: 1 });
    await verifyAll(keysOf(hanging), key, 30);
    hanging.kill("SIGSTOP");
    for (let asked = 0; asked < window.limit; asked += 25) await verifyAll(keys, key, 25);
    const denied = await scrape(edge);
    // The coordinator would wait for it at its end.
    hanging.kill("SIGKILL");
    link.refusing = true;
    link.cutAll();
    const coordinatorAfter = await scrapeWhen(coordinator, { latchkey_permit_ledger_up: 0 });
    const withoutLedger = await scrapeWhen(edge, { latchkey_coordinator_ledger_up: 0 });
    await coordinator.stop();
    const gone = await scrapeWhen(edge, { latchkey_coordinator_up: 0 });
    return [
      { alerts: ["LatchkeyUnsettledDenials"], before, after: denied },
      { alerts: ["LatchkeyPermitLedgerDown"], before: coordinatorBefore, after: coordinatorAfter },
      { alerts: ["LatchkeyEdgeWithoutLedger"], before, after: withoutLedger },
      { alerts: ["LatchkeyCoordinatorDown"], before, after: gone },
    ];
  },
};
