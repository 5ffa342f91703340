// Where readings of counters are kept, and what the first charges of an hour cost: on the embedded store and on Postgres.
// `npm run bench:readings` takes ten minutes and more, and prints tables. `npm run bench:readings -- charges` prints one of
// `sizes`, `writes` and `charges`; with `quick` it only shows that everything runs.
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import pg from "pg";
import { type Clock, systemClock } from "../src/ambient/clock.ts";
import { createLog } from "../src/ambient/log.ts";
import { createMetrics } from "../src/ambient/metrics.ts";
import { createSystemRandom } from "../src/ambient/random.ts";
import { formatId, idRandomLength } from "../src/domain/id.ts";
import { hourAt, hourMs } from "../src/domain/usage.ts";
import { openPostgresStore } from "../src/store/postgres/open-postgres-store.ts";
import { migrations } from "../src/store/sql/migrations.ts";
import { sql } from "../src/store/sql/sql.ts";
import { openSqliteStore } from "../src/store/sqlite/open-sqlite-store.ts";
import type { Store } from "../src/store/store.ts";
import { PostgresServer } from "../test/support/postgres-server.ts";
import { median } from "./rounds.ts";

const isQuick = process.argv.includes("quick");
const isAsked = (part: string) => process.argv.slice(2).every((word) => word === part || word === "quick");
const sizes = isQuick
  ? { kept: 500, days: 2, written: 2000, rounds: 2, counters: 2000 }
  : { kept: 20_000, days: 5, written: 100_000, rounds: 5, counters: 100_000 };
const batchMax = 500;
const random = createSystemRandom();
const startHour = hourAt(Date.parse("2026-03-01T00:00:00Z"));

/** A table of readings. `write` commits each batch; `pack` rewrites the table without gaps. */
interface Readings {
  write(hour: number, subjects: readonly string[], spent: number): Promise<void>;
  bytes(): Promise<number>;
  pack(): Promise<void>;
  close(): Promise<void>;
}

type Layout = "rows" | "columns";
const layouts: Readonly<Record<Layout, string>> = {
  rows: "a row per subject and hour",
  columns: "a row per subject and day",
};

/** The product's table, and one that has the same columns but for the hours of a day. */
function createText(layout: Layout, inPrimaryKey: string): string {
  const added = migrations.find(({ name }) => name === "0005-readings");
  const statements = added && "up" in added ? added.up(sql.raw(inPrimaryKey)).map(({ texts }) => texts.join("")) : [];
  const text = statements.find((each) => each.includes("CREATE TABLE readings "));
  if (text === undefined) throw new Error("the migrations have no table of readings");
  const hours = Array.from({ length: 24 }, (_, hour) => `h${hour} bigint`).join(", ");
  if (layout === "rows") return text;
  return text
    .replace(/hour bigint NOT NULL, spent bigint NOT NULL/, `day bigint NOT NULL, ${hours}`)
    .replace(", hour)", ", day)");
}

/** `value`: of the subject, the hour or day, and what was spent. */
function writeText(layout: Layout, hour: number, values: string): string {
  if (layout === "rows") return `INSERT INTO readings (subject, hour, spent) ${values} ON CONFLICT DO NOTHING`;
  const column = `h${hour % 24}`;
  return `INSERT INTO readings (subject, day, ${column}) ${values}
    ON CONFLICT (subject, day) DO UPDATE SET ${column} = COALESCE(readings.${column}, excluded.${column})`;
}

const unitOf = (layout: Layout, hour: number) => (layout === "rows" ? hour : Math.floor(hour / 24));

/** With the pragmas of the writer thread, which makes its own checkpoints too. */
function openSqliteReadings(file: string, layout: Layout, isDurable: boolean): Readings {
  const db = new DatabaseSync(file);
  db.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = ${isDurable ? "FULL" : "OFF"};
    PRAGMA journal_size_limit = 67108864; PRAGMA wal_autocheckpoint = 0`);
  db.exec(createText(layout, "WITHOUT ROWID"));
  let rows = 0;
  return {
    async write(hour, subjects, spent) {
      const insert = db.prepare(writeText(layout, hour, "VALUES (?, ?, ?)"));
      const unit = unitOf(layout, hour);
      db.exec("BEGIN IMMEDIATE");
      for (const subject of subjects) insert.run(subject, unit, spent);
      db.exec("COMMIT");
      rows += subjects.length;
      if (rows < 1000) return;
      rows = 0;
      db.exec("PRAGMA wal_checkpoint(PASSIVE)");
    },
    async bytes() {
      db.exec("PRAGMA wal_checkpoint(TRUNCATE)");
      return statSync(file).size;
    },
    pack: async () => db.exec("VACUUM"),
    close: async () => db.close(),
  };
}

async function openPgReadings(url: string, layout: Layout, isDurable: boolean): Promise<Readings> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(createText(layout, ""));
  if (!isDurable) await client.query("SET synchronous_commit = off");
  return {
    async write(hour, subjects, spent) {
      const text = writeText(layout, hour, "SELECT subject, $2, $3 FROM unnest($1::text[]) AS given (subject)");
      const name = `${layout} ${layout === "rows" ? "" : hour % 24}`;
      await client.query({ name, text, values: [subjects, unitOf(layout, hour), spent] });
    },
    async bytes() {
      await client.query("VACUUM readings");
      const { rows } = await client.query("SELECT pg_total_relation_size('readings') AS bytes");
      return Number(rows[0].bytes);
    },
    pack: async () => void (await client.query("VACUUM FULL readings")),
    close: () => client.end(),
  };
}

type OpenReadings = (layout: Layout, isDurable: boolean) => Promise<Readings>;

/** Ids of keys that were made one after the other. */
function makeIds(count: number): readonly string[] {
  const madeMs = startHour * hourMs;
  return Array.from({ length: count }, (_, i) => formatId("key", madeMs + i * 50, random.bytes(idRandomLength)));
}

function shuffled<Item>(items: readonly Item[]): readonly Item[] {
  const result = [...items];
  for (let i = result.length - 1; i > 0; i--) {
    const j = Math.floor(Math.random() * (i + 1));
    [result[i], result[j]] = [result[j] as Item, result[i] as Item];
  }
  return result;
}

/** In random order, as charges come; those of a batch in the order in which the ledger locks. */
function* batchesOf(subjects: readonly string[]): Generator<readonly string[]> {
  const all = shuffled(subjects);
  for (let from = 0; from < all.length; from += batchMax) yield all.slice(from, from + batchMax).toSorted();
}

async function measureSizes(engine: string, open: OpenReadings): Promise<void> {
  const ids = makeIds(sizes.kept);
  for (const active of [1, 6, 24]) {
    for (const layout of ["rows", "columns"] as const) {
      const readings = await open(layout, false);
      const emptyBytes = await readings.bytes();
      for (let day = 0; day < sizes.days; day++) {
        // Neighbouring hours, as in office hours. After each of them, what updates leave behind is cleared away.
        for (let hour = 0; hour < active; hour++) {
          const spent = 1000 + day * active + hour;
          for (const batch of batchesOf(ids)) await readings.write(startHour + day * 24 + hour, batch, spent);
          await readings.bytes();
        }
      }
      const each = (bytes: number) => ((bytes - emptyBytes) / (ids.length * sizes.days)).toFixed(1);
      const written = each(await readings.bytes());
      await readings.pack();
      console.log(`| ${engine}, ${active} | ${layouts[layout]} | ${written} | ${each(await readings.bytes())} |`);
      await readings.close();
    }
  }
}

async function measureWrites(engine: string, open: OpenReadings): Promise<void> {
  const ids = makeIds(sizes.written);
  const opened = { rows: await open("rows", true), columns: await open("columns", true) };
  const times: Record<Layout, number[]> = { rows: [], columns: [] };
  // The first hour makes the rows of the day.
  for (let hour = 0; hour <= sizes.rounds; hour++) {
    for (const layout of ["rows", "columns"] as const) {
      const startedMs = performance.now();
      for (const batch of batchesOf(ids)) await opened[layout].write(startHour + hour, batch, 1000 + hour);
      times[layout].push((performance.now() - startedMs) / 1000);
    }
  }
  for (const layout of ["rows", "columns"] as const) {
    const [first = 0, ...later] = times[layout];
    const [low, high] = [Math.min(...later), Math.max(...later)].map((each) => each.toFixed(2));
    const cells = [first.toFixed(2), median(later).toFixed(2), `${low}–${high}`];
    console.log(`| ${engine} | ${layouts[layout]} | ${cells.join(" | ")} |`);
    await opened[layout].close();
  }
}

/** A clock that shows one moment: its hour is set. */
class HourClock implements Clock {
  hour = startHour;
  nowMs = () => this.hour * hourMs + 1000;
  monotonicMs = () => systemClock.monotonicMs();
  lateMs = () => systemClock.lateMs();
}

/** Charges each counter once, with one batch under way in each lane, and answers how long each batch took. */
async function pass(store: Store, ids: readonly string[]): Promise<readonly number[]> {
  const batches = batchesOf(ids);
  const times: number[] = [];
  const lane = async (engine: Store["usageLanes"][number]) => {
    for (const batch of batches) {
      const charges = batch.map((subject) => ({ subject, cost: 1, count: 1 }));
      const startedMs = performance.now();
      const results = await engine.settle(charges);
      times.push(performance.now() - startedMs);
      const isDone = results.every((each) => each.outcome === "settled" && each.granted === 1);
      if (!isDone) throw new Error("a charge was not settled");
    }
  };
  await Promise.all(store.usageLanes.map(lane));
  return times;
}

async function measureHours(engine: string, store: Store, ids: readonly string[], clock: HourClock): Promise<void> {
  // Until the system's cache has everything.
  for (let i = 0; i < 2; i++) await pass(store, ids);
  const first: number[] = [];
  const steady: number[] = [];
  const ratios: string[] = [];
  for (let round = 0; round < sizes.rounds; round++) {
    clock.hour++;
    const times = [await pass(store, ids), await pass(store, ids), await pass(store, ids)] as const;
    first.push(...times[0]);
    steady.push(...times[1], ...times[2]);
    ratios.push((percentile(times[0], 0.99) / percentile([...times[1], ...times[2]], 0.99)).toFixed(2));
  }
  for (const [name, times] of Object.entries({ "other minutes": steady, "the first of an hour": first })) {
    const [middle, high] = [percentile(times, 0.5), percentile(times, 0.99)];
    const ratio = (high / percentile(steady, 0.99)).toFixed(2);
    console.log(`| ${engine}, ${name} | ${middle.toFixed(1)} | ${high.toFixed(1)} | ${ratio} × |`);
  }
  console.log(`| ratio in each round | | | ${ratios.join(", ")} |`);
}

function percentile(values: readonly number[], part: number): number {
  return values.toSorted((a, b) => a - b)[Math.ceil(values.length * part) - 1] ?? Number.NaN;
}

const columns = "remaining, credited, metered_hour, metered_since_ms";
const counterValues = `2000000000, 2000000000, 0, ${startHour * hourMs}`;
const log = createLog("error", (line) => process.stderr.write(line));

async function measureEmbedded(): Promise<void> {
  const [ids, clock, file] = [makeIds(sizes.counters), new HourClock(), join(folder, "latchkey.db")];
  const store = await openSqliteStore({ metrics: createMetrics(), log, file, clock });
  const db = new DatabaseSync(file);
  const insert = db.prepare(`INSERT INTO counters (subject, ${columns}) VALUES (?, ${counterValues})`);
  db.exec("BEGIN");
  for (const id of ids) insert.run(id);
  db.exec("COMMIT");
  db.close();
  await measureHours("embedded", store, ids, clock);
  await store.close();
}

async function measurePostgres(): Promise<void> {
  const [ids, ledgerClock, url] = [makeIds(sizes.counters), new HourClock(), await postgres.createDatabase()];
  const options = { metrics: createMetrics(), random, clock: systemClock, ledgerClock, url };
  const store = await openPostgresStore({ ...options, connectionsMax: 4, lanes: 2, usageTimeoutMs: 20_000 });
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const given = "unnest($1::text[]) AS given (subject)";
  await client.query(`INSERT INTO counters (subject, ${columns}) SELECT subject, ${counterValues} FROM ${given}`, [
    ids,
  ]);
  await client.query("VACUUM ANALYZE counters");
  await client.end();
  await measureHours("Postgres, 2 lanes", store, ids, ledgerClock);
  await store.close();
}

const folder = mkdtempSync(join(tmpdir(), "latchkey-readings-"));
const postgres = await PostgresServer.start();
try {
  let files = 0;
  const openSqlite: OpenReadings = async (...how) => openSqliteReadings(join(folder, `${++files}.db`), ...how);
  const openPg: OpenReadings = async (...how) => openPgReadings(await postgres.createDatabase(), ...how);

  if (isAsked("sizes")) {
    console.log("| bytes for each key and day; active hours | layout | as written | rewritten |\n|---|---|---|---|");
    await measureSizes("embedded", openSqlite);
    await measureSizes("Postgres", openPg);
  }
  if (isAsked("writes")) {
    console.log(
      `\n| seconds for ${sizes.written} readings | layout | first hour of a day | later | spread |\n|---|---|---|---|---|`,
    );
    await measureWrites("embedded", openSqlite);
    await measureWrites("Postgres", openPg);
  }
  if (isAsked("charges")) {
    console.log(
      `\n| charges of ${sizes.counters} counters, ${batchMax} in a batch | median ms | p99 ms | ratio |\n|---|---|---|---|`,
    );
    await measureEmbedded();
    await measurePostgres();
  }
} finally {
  await postgres.remove();
  rmSync(folder, { recursive: true, force: true });
}
