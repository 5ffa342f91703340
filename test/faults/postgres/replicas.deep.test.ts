import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { pgMigrations } from "../../../src/store/postgres/pg-migrations.ts";
import { withRoom } from "../../support/deep.ts";
import { problemsWithUse, useUpTogether } from "../../support/exact-usage.ts";
import { Fleet } from "../../support/fleet.ts";
import { openConnections } from "../../support/open-connections.ts";
import { rawClient } from "../../support/raw-client.ts";
import { readMetric } from "../../support/read-metric.ts";
import { query } from "../../support/run-statement.ts";
import { tempFolder } from "../../support/temp-folder.ts";
import { createEmptyDatabase, createTestDatabase, hasPostgres } from "../../support/test-database.ts";
import { testRootKey } from "../../support/test-root-key.ts";

const replicas = 3;
const clients = 96;

describe.runIf(hasPostgres)(`${replicas} replicas on one Postgres`, () => {
  it(`grant each of 1000 uses to exactly one of ${clients} clients`, { retry: 0 }, async () => {
    const { baseUrls } = await Fleet.start(await createTestDatabase(), replicas);
    const answers = await useUpTogether({ baseUrls, rootKey: testRootKey, clients, uses: 1000 });
    expect(problemsWithUse(answers, 1000)).toEqual([]);
  });

  it("that start at once on an empty database migrate it once and leave one root key, which all of them take", async () => {
    for (let round = 0; round < 3; round++) {
      const url = await createEmptyDatabase();
      const folders = Array.from({ length: replicas }, () => tempFolder());
      const own = (i: number) => ({ LATCHKEY_ROOT_KEY: "", LATCHKEY_DATA_DIR: folders[i] as string });
      const fleet = await Fleet.start(url, replicas, own);

      for (const baseUrl of fleet.baseUrls) expect((await fetch(`${baseUrl}/readyz`)).status).toBe(200);
      const { rows } = await query(url, "SELECT name FROM schema_migrations");
      expect(rows.map(({ name }) => name).sort()).toEqual(pgMigrations.map(({ name }) => name).sort());

      const files = folders.map((folder) => join(folder, "root-key-postgres")).filter((file) => existsSync(file));
      expect(files).toHaveLength(1);
      const rootKey = readFileSync(files[0] as string, "utf8").trim();
      for (const baseUrl of fleet.baseUrls) {
        const created = rawClient({ baseUrl, rootKey }).keys.createKey({ apiId: "api" });
        expect(await created).toHaveProperty("key");
      }
      await Promise.all(fleet.baseUrls.map((_, i) => fleet.kill(i)));
    }
  });

  it("refuse a key deleted on one of them within two seconds, in all their workers, and look no other key up again", async () => {
    const url = await createTestDatabase();
    // Shorter than this test takes: a key that expired would be looked up again.
    const own = (i: number) => ({ LATCHKEY_CACHE_TTL_MS: "2000", ...(i === 1 && { LATCHKEY_WORKERS: "2" }) });
    const fleet = await Fleet.start(url, replicas, own);
    const [first, ...others] = fleet.baseUrls.map((baseUrl) => rawClient({ baseUrl, rootKey: testRootKey }).keys);
    if (first === undefined) throw new Error("no replica");
    const [deleted, byHand, ...stay] = await Promise.all(
      Array.from({ length: 12 }, () => first.createKey({ apiId: "api" })),
    );
    if (deleted === undefined || byHand === undefined) throw new Error("no key");
    // Each connection of a replica with workers is served by one of them.
    const verifiers = fleet.baseUrls.flatMap((baseUrl) => openConnections(baseUrl, 8));
    const validUntil = (key: string, withinMs: number) =>
      Promise.all(
        verifiers.map(async (verify) => {
          const startMs = performance.now();
          let askedMs = 0;
          do askedMs = performance.now() - startMs;
          while ((await verify(key)).valid && askedMs < withinMs);
          return askedMs;
        }),
      );
    const misses = async () => {
      const ports = fleet.baseUrls.map((_, i) => Number(new URL(fleet.replica(i).internalUrl).port));
      return Promise.all(ports.map((port) => readMetric(port, 'latchkey_key_cache_total{event="miss"}')));
    };
    const verifyAll = async (keys: readonly { key: string }[]) => {
      for (const { key } of keys) for (const verify of verifiers) expect((await verify(key)).code).toBe("VALID");
    };
    await verifyAll([deleted, byHand, ...stay]);

    await first.deleteKey({ keyId: deleted.keyId });
    expect((await first.verifyKey({ key: deleted.key })).code).toBe("NOT_FOUND");
    const lastMs = await validUntil(deleted.key, 4000);
    console.log(`refused after ${Math.round(Math.max(...lastMs))} ms`);
    expect(Math.max(...lastMs)).toBeLessThan(withRoom(2000));
    for (const client of others) expect((await client.verifyKey({ key: deleted.key })).code).toBe("NOT_FOUND");

    // The control: a change that the feed does not tell is not seen, here one that was made by hand.
    await query(url, `DELETE FROM keys WHERE id = '${byHand.keyId}'`);
    expect(Math.min(...(await validUntil(byHand.key, 2500)))).toBeGreaterThanOrEqual(2500);
    // Longer ago than their time to live, which does not run while the feed is read.
    const missed = await misses();
    await verifyAll(stay);
    expect(await misses()).toEqual(missed);

    await query(url, lineForChangesByHand);
    expect(Math.max(...(await validUntil(byHand.key, 4000)))).toBeLessThan(withRoom(2000));
  });
});

/** As the operations guide shows it (test/store/postgres/change-feed.test.ts). */
const lineForChangesByHand = "INSERT INTO changes (kind) VALUES ('everything')";
