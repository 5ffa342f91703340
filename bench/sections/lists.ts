import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as delay } from "node:timers/promises";
import pg from "pg";
import { systemClock } from "../../src/ambient/clock.ts";
import { createMetrics } from "../../src/ambient/metrics.ts";
import { createSystemRandom } from "../../src/ambient/random.ts";
import { openPostgresStore } from "../../src/store/postgres/open-postgres-store.ts";
import { type KeysQuery, pageLimitMax } from "../../src/store/queries.ts";
import { claimDataFolder } from "../../src/store/sqlite/data-folder.ts";
import type { Store } from "../../src/store/store.ts";
import { createKey } from "../../src/usecases/create-key.ts";
import { plainKey } from "../../test/support/plain-key.ts";
import { PostgresServer } from "../../test/support/postgres-server.ts";
import { fillPostgres } from "../contestants/fill-postgres.ts";
import { closeInOrder, filledId, fillStore, openStore } from "../contestants/fill-store.ts";
import type { Bench, Section } from "../harness/section.ts";
import { inTurns, keepBusy, type Measured } from "../rounds.ts";

/** One page each, by what is in the table. */
const pages = {
  "first page": {},
  "page in the middle": { after: "middle" },
  "last page": { after: "end" },
  "disabled keys: none": { enabled: false },
  "keys that expire before 2020: none": { expiresBeforeMs: Date.UTC(2020, 0) },
  "search that finds nothing": { search: "nothing" },
  "search that finds many": { search: "live_" },
  "search that finds many, all filtered out": { search: "live_", enabled: false },
} as const satisfies Record<string, Partial<KeysQuery>>;

type Page = keyof typeof pages;

/** Those that find nothing. */
const empty: readonly Page[] = [
  "disabled keys: none",
  "keys that expire before 2020: none",
  "search that finds nothing",
  "search that finds many, all filtered out",
];

const indexes = ["keys_by_api", "keys_by_owner", "keys_by_owner_and_api", "keys_by_name", "keys_by_start"];
const creators = 16;

export const lists: Section<`${"sqlite" | "pg"}${"Last" | "Empty" | "Create"}`> = {
  title: "Lists",
  how: `Pages of ${pageLimitMax} keys of one API, one at a time, asked of the store itself. Beside the time of a page, how it compares with the first. A page that finds nothing is one call: it examines a bounded number of keys, and then answers with a cursor. Last, keys with name and owner are created, ${creators} at a time, with the indexes of the lists and then without. A million keys, or as many as \`npm run bench -- lists keys=100000\` says.`,
  goals: {
    sqliteLast: { what: "embedded store, last page beside the first", unit: "×", atMost: 1.5 },
    sqliteEmpty: { what: "embedded store, slowest page that finds nothing beside the first", unit: "×", atMost: 10 },
    sqliteCreate: { what: "embedded store, keys created per second, beside no such indexes", unit: "×" },
    pgLast: { what: "Postgres, last page beside the first", unit: "×", atMost: 1.5 },
    pgEmpty: { what: "Postgres, slowest page that finds nothing beside the first", unit: "×", atMost: 10 },
    pgCreate: { what: "Postgres, keys created per second, beside no such indexes", unit: "×" },
  },
  async measure(bench) {
    const sqlite = await measureSqlite(bench);
    const postgres = await measurePostgres(bench);
    const head = [
      "| ms for a page | embedded store | beside the first | Postgres | beside the first |",
      "|---|---|---|---|---|",
    ];
    const rows = (Object.keys(pages) as Page[]).map((page) => {
      const cells = [sqlite, postgres].flatMap(({ ms }) => [
        ms(page).toFixed(2),
        `${(ms(page) / ms("first page")).toFixed(2)} ×`,
      ]);
      return `| ${page} | ${cells.join(" | ")} |`;
    });
    const created = [sqlite, postgres].map(
      ({ withIndexes, without }) => `${withIndexes.toFixed(0)} with the indexes and ${without.toFixed(0)} without`,
    );
    return {
      text: [
        [...head, ...rows].join("\n"),
        `${bench.growthKeys} keys. Keys created per second: ${created[0]} on the embedded store, ${created[1]} on Postgres.`,
      ],
      figures: {
        sqliteLast: sqlite.ms("last page") / sqlite.ms("first page"),
        sqliteEmpty: slowestEmpty(sqlite) / sqlite.ms("first page"),
        sqliteCreate: sqlite.withIndexes / sqlite.without,
        pgLast: postgres.ms("last page") / postgres.ms("first page"),
        pgEmpty: slowestEmpty(postgres) / postgres.ms("first page"),
        pgCreate: postgres.withIndexes / postgres.without,
      },
    };
  },
};

interface Result {
  ms(page: Page): number;
  readonly withIndexes: number;
  readonly without: number;
}

function slowestEmpty({ ms }: Result): number {
  return Math.max(...empty.map(ms));
}

async function measureSqlite(bench: Bench): Promise<Result> {
  const dataDir = mkdtempSync(join(bench.folder, "lists-"));
  await fillStore(dataDir, bench.growthKeys, join(bench.folder, "embedded-keys"));
  await closeInOrder(dataDir);
  const folder = claimDataFolder(dataDir);
  bench.atEnd(() => folder.release());
  const store = await openStore(folder.databaseFile);
  bench.atEnd(() => store.close());
  // Until the file is checked there are no lists.
  while (store.health?.doubt !== undefined) await delay(100);
  return measureStore(bench, store, async () => {
    const db = new DatabaseSync(folder.databaseFile, { timeout: 60_000 });
    for (const index of indexes) db.exec(`DROP INDEX ${index}`);
    db.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    db.close();
  });
}

async function measurePostgres(bench: Bench): Promise<Result> {
  const server = await PostgresServer.start({ shared_buffers: "512MB" });
  bench.atEnd(() => server.remove());
  const url = await server.createDatabase();
  await fillPostgres(url, bench.growthKeys, join(bench.folder, "postgres-keys"));
  const ambient = { clock: systemClock, random: createSystemRandom(), metrics: createMetrics() };
  const store = await openPostgresStore({ ...ambient, url, connectionsMax: 10, lanes: 1, usageTimeoutMs: 5000 });
  bench.atEnd(() => store.close());
  return measureStore(bench, store, async () => {
    const client = new pg.Client(url);
    await client.connect();
    for (const index of indexes) await client.query(`DROP INDEX ${index}`);
    await client.query("CHECKPOINT");
    await client.end();
  });
}

async function measureStore(bench: Bench, store: Store, dropIndexes: () => Promise<void>): Promise<Result> {
  const places = { middle: filledId(Math.floor(bench.growthKeys / 2)), end: filledId(pageLimitMax + 1) };
  const runs = Object.entries<Partial<KeysQuery>>(pages).map(([page, { after, ...filters }]) => {
    const place = places[after as keyof typeof places] as string | undefined;
    const query: KeysQuery = { kind: "keys", apiId: "bench", limit: pageLimitMax, ...filters, after: place };
    return [page, (ms: number) => keepBusy(1, ms, () => store.management.read(query))];
  });
  const turns = { ...bench.turns, warmUpMs: 1000 };
  const measured = await inTurns(Object.fromEntries(runs) as Record<Page, (ms: number) => Promise<number>>, turns);
  const withIndexes = await createdPerSecond(bench, store);
  await dropIndexes();
  const without = await createdPerSecond(bench, store);
  return { ms: (page) => 1000 / measured[page].median, withIndexes, without };
}

async function createdPerSecond({ turns }: Bench, { management }: Store): Promise<number> {
  const deps = { clock: systemClock, random: createSystemRandom() };
  const key = { ...plainKey, byteLength: undefined, useDefaults: false, apiId: "bench", prefix: "live" };
  const create = (ms: number) =>
    keepBusy(creators, ms, (n) => {
      const request = { ...key, name: `name ${n % 1000}`, ownerId: `owner ${n % 1000}` };
      return createKey(management, request, undefined, deps);
    });
  const { created }: Record<"created", Measured> = await inTurns({ created: create }, turns);
  return created.median;
}
