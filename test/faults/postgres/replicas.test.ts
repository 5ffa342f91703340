import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { createClient } from "../../../src/sdk/index.ts";
import { pgMigrations } from "../../../src/store/postgres/pg-migrations.ts";
import { problemsWithUse, useTogether, useUpTogether } from "../../support/exact-usage.ts";
import { Fleet } from "../../support/fleet.ts";
import { query } from "../../support/run-statement.ts";
import { tempFolder } from "../../support/temp-folder.ts";
import { createTestDatabase, hasPostgres } from "../../support/test-database.ts";
import { testRootKey } from "../../support/test-root-key.ts";

const replicas = 3;
const clients = 96;
const dayMs = 86_400_000;

/** A replica whose own clock is wrong by so many days. */
function skewedBy(days: number): Record<string, string> {
  const shift = `const now = Date.now; Date.now = () => now() + ${days * dayMs}`;
  return { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(shift)}` };
}

/** The counts below hold within one day: a test that began just before midnight would see another refill. */
async function awayFromMidnight(): Promise<void> {
  const leftMs = dayMs - (Date.now() % dayMs);
  if (leftMs < 30_000) await delay(leftMs + 1000);
}

describe.runIf(hasPostgres)(`${replicas} replicas on one Postgres`, () => {
  it(`grant each of 1000 uses to exactly one of ${clients} clients`, async () => {
    const { baseUrls } = await Fleet.start(await createTestDatabase(), replicas);
    const answers = await useUpTogether({ baseUrls, rootKey: testRootKey, clients, uses: 1000 });
    expect(problemsWithUse(answers, 1000)).toEqual([]);
  });

  it("that start at once on an empty database migrate it once and leave one root key, which all of them take", async () => {
    for (let round = 0; round < 3; round++) {
      const url = await createTestDatabase();
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
        const created = createClient({ baseUrl, rootKey }).createKey({ apiId: "api" });
        expect(await created).toHaveProperty("key");
      }
      await Promise.all(fleet.baseUrls.map((_, i) => fleet.kill(i)));
    }
  });

  const refillCases = [
    { name: "restore a counter", carryOver: false, amount: 500, daysAgo: 3, uses: 500 },
    { name: "add one refill per boundary", carryOver: true, amount: 100, daysAgo: 5, uses: 500 },
  ];
  it.each(refillCases)(
    "$name once, by the database's clock, even if the replicas' clocks are wrong",
    async ({ uses, ...refill }) => {
      await awayFromMidnight();
      const url = await createTestDatabase();
      const { baseUrls } = await Fleet.start(url, replicas, (i) => skewedBy([0, 2, -2][i] as number));
      const { amount, carryOver, daysAgo } = refill;
      const { key } = await createClient({ baseUrl: baseUrls[0] as string, rootKey: testRootKey }).createKey({
        apiId: "api",
        remaining: 0,
        refill: { interval: "daily", amount, carryOver },
      });
      const today = "date_trunc('day', clock_timestamp() AT TIME ZONE 'UTC')";
      const atMs = (moment: string) => `(extract(epoch FROM ${moment}) * 1000)::bigint`;
      await query(url, `UPDATE key_usage SET refilled_through_ms = ${atMs(`${today} - interval '${daysAgo} days'`)}`);

      const answers = await useTogether(key, { baseUrls, rootKey: testRootKey, clients, uses });

      expect(problemsWithUse(answers, uses)).toEqual([]);
      const { rows } = await query(
        url,
        `SELECT remaining::int, refilled_through_ms = ${atMs(today)} AS due FROM key_usage`,
      );
      expect(rows).toEqual([{ remaining: 0, due: true }]);
    },
  );

  it("refuse a key deleted on one of them: there at once, on the others when their memory of it ends", async () => {
    const cacheTtlMs = 1000;
    const own = () => ({ LATCHKEY_CACHE_TTL_MS: String(cacheTtlMs) });
    const { baseUrls } = await Fleet.start(await createTestDatabase(), replicas, own);
    const [first, ...others] = baseUrls.map((baseUrl) => createClient({ baseUrl, rootKey: testRootKey }));
    if (first === undefined) throw new Error("no replica");
    const { key, keyId } = await first.createKey({ apiId: "api" });
    for (const client of [first, ...others]) expect((await client.verifyKey({ key })).code).toBe("VALID");

    await first.deleteKey({ keyId });
    const deletedMs = performance.now();
    expect((await first.verifyKey({ key })).code).toBe("NOT_FOUND");
    await Promise.all(
      others.map(async (client) => {
        let askedMs = 0;
        do askedMs = performance.now();
        while ((await client.verifyKey({ key })).valid && askedMs - deletedMs < 2 * cacheTtlMs);
        // Requests after that time have been refused; earlier ones may have been answered from memory.
        expect(askedMs - deletedMs).toBeLessThan(cacheTtlMs + 100);
      }),
    );
  });
});
