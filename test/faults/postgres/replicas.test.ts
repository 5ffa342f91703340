import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { pgMigrations } from "../../../src/store/postgres/pg-migrations.ts";
import { problemsWithUse, useTogether } from "../../support/exact-usage.ts";
import { Fleet } from "../../support/fleet.ts";
import { openConnections } from "../../support/open-connections.ts";
import { rawClient } from "../../support/raw-client.ts";
import { query } from "../../support/run-statement.ts";
import { tempFolder } from "../../support/temp-folder.ts";
import { createEmptyDatabase, createTestDatabase, hasPostgres } from "../../support/test-database.ts";
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
  if (leftMs < 60_000) await delay(leftMs + 1000);
}

describe.runIf(hasPostgres)(`${replicas} replicas on one Postgres`, () => {
  it("that start at once on an empty database migrate it once and leave one root key, which all of them take", async () => {
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
  });
});

describe.runIf(hasPostgres)(
  `${replicas} replicas on one Postgres whose clocks are wrong, one of them with workers`,
  () => {
    let url: string;
    let fleet: Fleet;
    const undos: (() => void)[] = [];
    beforeAll(async () => {
      url = await createTestDatabase();
      const own = (i: number) => ({ ...skewedBy([0, 2, -2][i] as number), ...(i === 1 && { LATCHKEY_WORKERS: "2" }) });
      fleet = await Fleet.start(url, replicas, own, (undo) => undos.push(undo));
    });
    afterAll(() => {
      for (const undo of undos) undo();
    });

    const refillCases = [
      { name: "restore a counter", carryOver: false, amount: 500, daysAgo: 3, uses: 500 },
      { name: "add one refill per boundary", carryOver: true, amount: 100, daysAgo: 5, uses: 500 },
    ];
    it.each(refillCases)(
      `$name once, by the database's clock, and grant each use to exactly one of ${clients} clients`,
      async ({ uses, amount, carryOver, daysAgo }) => {
        await awayFromMidnight();
        const { baseUrls } = fleet;
        const { key, keyId } = await rawClient({ baseUrl: baseUrls[0] as string, rootKey: testRootKey }).keys.createKey(
          {
            apiId: "api",
            remaining: 0,
            refill: { interval: "daily", amount, carryOver },
          },
        );
        const today = "date_trunc('day', clock_timestamp() AT TIME ZONE 'UTC')";
        const atMs = (moment: string) => `(extract(epoch FROM ${moment}) * 1000)::bigint`;
        const before = atMs(`${today} - interval '${daysAgo} days'`);
        await query(url, `UPDATE counters SET refilled_through_ms = ${before} WHERE subject = '${keyId}'`);

        const answers = await useTogether(key, { baseUrls, rootKey: testRootKey, clients, uses });

        expect(problemsWithUse(answers, uses)).toEqual([]);
        const { rows } = await query(
          url,
          `SELECT remaining::int, refilled_through_ms = ${atMs(today)} AS due FROM counters WHERE subject = '${keyId}'`,
        );
        expect(rows).toEqual([{ remaining: 0, due: true }]);
      },
    );

    it("refuse a key deleted on one of them, in all their workers", async () => {
      const [first] = fleet.baseUrls.map((baseUrl) => rawClient({ baseUrl, rootKey: testRootKey }).keys);
      if (first === undefined) throw new Error("no replica");
      const { key, keyId } = await first.createKey({ apiId: "api" });
      // Each connection of a replica with workers is served by one of them.
      const verifiers = fleet.baseUrls.flatMap((baseUrl) => openConnections(baseUrl, 8));
      const everyone = async () =>
        new Set(await Promise.all(verifiers.map(async (verify) => (await verify(key)).code)));
      await expect.poll(everyone).toEqual(new Set(["VALID"]));
      await first.deleteKey({ keyId });
      expect((await first.verifyKey({ key })).code).toBe("NOT_FOUND");
      await expect.poll(everyone).toEqual(new Set(["NOT_FOUND"]));
    });
  },
);
