import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import pg from "pg";
import { describe, expect, it } from "vitest";
import { systemClock } from "../../src/ambient/clock.ts";
import { createLog } from "../../src/ambient/log.ts";
import { createMetrics } from "../../src/ambient/metrics.ts";
import { WaitingRoom } from "../../src/domain/waiting-room.ts";
import { CoalescingUsageLedger } from "../../src/store/coalescing-usage-ledger.ts";
import type { UpdateRemaining } from "../../src/store/commands.ts";
import { databaseNowMs } from "../../src/store/postgres/guarded-statement.ts";
import { openPgEngine } from "../../src/store/postgres/open-postgres-store.ts";
import { toPgStatement } from "../../src/store/postgres/pg-connection.ts";
import { pgRefilledCounter } from "../../src/store/postgres/refill-steps.ts";
import { sql } from "../../src/store/sql/sql.ts";
import { createSqlManagement } from "../../src/store/sql/sql-management.ts";
import { openSqliteStore } from "../../src/store/sqlite/open-sqlite-store.ts";
import type { Store } from "../../src/store/store.ts";
import { refillRule, sampleKey } from "../contract/sample-keys.ts";
import { settle } from "../contract/settle.ts";
import { created } from "../contract/usage-cases.ts";
import { waitingLonger } from "../faults/postgres/lane-fixture.ts";
import { type BalanceStep, expectExplained, stepOfUpdate } from "../support/balance-steps.ts";
import { createKey, deleteKey, updateRemaining } from "../support/manage.ts";
import { openTestStore } from "../support/open-test-store.ts";
import { query } from "../support/run-statement.ts";
import { tempFolder } from "../support/temp-folder.ts";
import { TestClock } from "../support/test-clock.ts";
import { createTestDatabase, hasPostgres } from "../support/test-database.ts";
import { atTestEnd } from "../support/test-end.ts";
import { readRows } from "./sqlite/open-test-engine.ts";

interface Opened {
  /** Each with its own connections; all on the same data. */
  readonly replicas: readonly [Store, ...Store[]];
  read(text: string): Promise<Record<string, unknown>[]>;
}

async function openSqlite(): Promise<Opened> {
  const file = join(tempFolder(), "latchkey.db");
  const store = await openSqliteStore({
    file,
    clock: systemClock,
    metrics: createMetrics(),
    log: createLog("error", () => {}),
    onDeath: (cause) => {
      throw cause;
    },
  });
  atTestEnd(() => store.close());
  return { replicas: [store], read: async (text) => readRows(file, text) };
}

async function openPostgres(): Promise<Opened> {
  const url = await createTestDatabase();
  const first = await openTestStore({ url, connectionsMax: 4 });
  const others = [await openTestStore({ url, connectionsMax: 4 }), await openTestStore({ url, connectionsMax: 4 })];
  return { replicas: [first, ...others], read: async (text) => (await query(url, text)).rows };
}

const engines = [
  { name: "SQLite", open: openSqlite },
  ...(hasPostgres ? [{ name: "three replicas on Postgres", open: openPostgres }] : []),
];

const clock = new TestClock();

function usageOf({ usageLanes }: Store): CoalescingUsageLedger {
  const deps = { clock: systemClock, metrics: createMetrics(), waitingRoom: new WaitingRoom(10_000) };
  return new CoalescingUsageLedger(usageLanes, deps);
}

describe.each(engines)("updates of counters on $name", ({ open }) => {
  it("count from the balance that uses left, with batches in flight: 100, a use, set to 50, a use, 49", async () => {
    const { replicas } = await open();
    const ledgers = replicas.map(usageOf);
    const busy = await Promise.all(
      Array.from({ length: 20 }, () => created(replicas[0], clock, { remaining: 100_000 })),
    );
    let isOver = false;
    const load = ledgers.map(async (usage) => {
      while (!isOver) await Promise.all(busy.map(({ id }) => usage.spend([id], 1)));
    });
    for (let round = 0; round < 15; round++) {
      const key = await created(replicas[0], clock, { remaining: 100 });
      const at = <Part>(parts: readonly Part[], i: number) => parts[(round + i) % parts.length] as Part;
      expect(await at(ledgers, 0).spend([key.id], 1)).toEqual({ outcome: "spent", remaining: 99 });
      expect(await updateRemaining(at(replicas, 1).management, key.id, "set", 50)).toMatchObject({ outcome: "done" });
      expect(await at(ledgers, 2).spend([key.id], 1)).toEqual({ outcome: "spent", remaining: 49 });
    }
    isOver = true;
    await Promise.all(load);
  });

  it("and uses of one key by many at once are taken one after the other: every answer and the end are explained", async () => {
    const { replicas } = await open();
    const ledgers = replicas.map(usageOf);
    const key = await created(replicas[0], clock, { remaining: 500 });
    const steps: BalanceStep[] = [];
    const versions: number[] = [];
    const use = async (usage: CoalescingUsageLedger) => {
      const spend = await usage.spend([key.id], 1);
      if (spend.outcome === "missing") throw new Error("the counter is missing");
      steps.push({ before: spend.remaining + Number(spend.outcome === "spent"), after: spend.remaining });
    };
    const change = async ({ management }: Store, i: number) => {
      const update: Pick<UpdateRemaining, "op" | "value"> =
        i % 8 === 0
          ? { op: "set", value: (i + 1) * 10_000 }
          : { op: i % 2 === 0 ? "increment" : "decrement", value: 100 + i };
      const outcome = await updateRemaining(management, key.id, update.op, update.value);
      const step = stepOfUpdate(update, outcome);
      if (step !== undefined) steps.push(step);
      if (outcome.outcome === "done") versions.push(outcome.answer?.version ?? 0);
    };
    const callers = Array.from({ length: 12 }, async (_, caller) => {
      for (let i = 0; i < 20; i++) {
        const at = (caller + i) % replicas.length;
        if (caller < 4) await change(replicas[at] as Store, caller * 20 + i);
        else await use(ledgers[at] as CoalescingUsageLedger);
      }
    });
    await Promise.all(callers);
    const [end] = await settle(replicas[0], [{ subject: key.id, cost: 1, count: 0 }]);
    expectExplained(500, steps, end?.outcome === "settled" ? end.remaining : -1);
    expect(versions.sort((a, b) => a - b)).toEqual(versions.map((_, i) => i + 2));
    expect(steps.length).toBe(160 + versions.length);
  });

  it("and uses, removed counters and deleted keys wait for each other in no circle; the keys know whether they have one", async () => {
    const { replicas, read } = await open();
    const ids: string[] = [];
    for (let round = 0; round < 6; round++) {
      const keys = Array.from({ length: 6 }, (_, i) => sampleKey(clock, i % 2 === 0 ? { remaining: 1000 } : {}));
      await Promise.all(keys.map((key) => createKey(replicas[0].management, key)));
      const work = replicas.flatMap((store, replica) => [
        ...Array.from({ length: 4 }, () =>
          settle(
            store,
            keys.map(({ id }) => ({ subject: id, cost: 1, count: 1 })),
          ),
        ),
        ...keys.flatMap(({ id }, i) => [
          updateRemaining(store.management, id, "set", i + replica === 2 ? undefined : 100),
          updateRemaining(store.management, id, "increment", 5),
          updateRemaining(store.management, id, "set", i % 3 === 0 ? 7 : undefined),
          ...(i === 5 ? [deleteKey(store.management, id)] : []),
        ]),
      ]);
      await Promise.all<unknown>(work);
      ids.push(...keys.map(({ id }) => id));
    }
    const rows = await read("SELECT id, has_counter, subject FROM keys LEFT JOIN counters ON subject = id");
    expect(rows.filter((row) => (Number(row.has_counter) === 1) !== (row.subject !== null))).toEqual([]);
    expect(new Set(rows.map((row) => Number(row.has_counter)))).toEqual(new Set([0, 1]));
    expect(rows).toHaveLength(ids.length - 6);
  });

  it("move the key's version and the time of its last change, and those that are refused do not", async () => {
    const { replicas, read } = await open();
    const [{ management }] = replicas;
    const key = await created(replicas[0], clock, { remaining: 5 });
    const state = async () => {
      const [row] = await read(`SELECT version, updated_at_ms, has_counter FROM keys WHERE id = '${key.id}'`);
      return Object.values(row ?? {}).map(Number);
    };
    const nowMs = clock.nowMs();
    expect(await state()).toEqual([1, nowMs, 1]);
    await updateRemaining(management, key.id, "decrement", 5, nowMs + 1);
    expect(await state()).toEqual([2, nowMs + 1, 1]);
    await updateRemaining(management, key.id, "decrement", 1, nowMs + 2);
    expect(await state()).toEqual([2, nowMs + 1, 1]);
    await updateRemaining(management, key.id, "set", undefined, nowMs + 3);
    expect(await state()).toEqual([3, nowMs + 3, 0]);
    await updateRemaining(management, key.id, "increment", 1, nowMs + 4);
    expect(await state()).toEqual([3, nowMs + 3, 0]);
    await updateRemaining(management, key.id, "set", 0, nowMs + 5);
    expect(await state()).toEqual([4, nowMs + 5, 1]);
  });
});

describe.runIf(hasPostgres)("an update that waited for the counter's row", () => {
  const waitingText =
    "SELECT count(*)::int AS n FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()";

  async function connect(url: string): Promise<pg.Client> {
    const client = new pg.Client({ connectionString: url });
    client.on("error", () => {});
    atTestEnd(() => client.end());
    await client.connect();
    return client;
  }

  /** Another transaction that has the row; it has already run `change`. */
  async function hold(url: string, keyId: string, change: string): Promise<pg.Client> {
    const holder = await connect(url);
    await holder.query("BEGIN");
    await holder.query(`UPDATE counters SET ${change} WHERE subject = '${keyId}'`);
    return holder;
  }

  async function untilWaiting(url: string): Promise<void> {
    while ((await query(url, waitingText)).rows[0].n === 0) await delay(5);
  }

  it("goes on from the uses that were committed meanwhile", async () => {
    const url = await createTestDatabase();
    const store = await openTestStore({ url });
    const engine = openPgEngine({ url, connectionsMax: 1 });
    atTestEnd(() => engine.close());
    const management = createSqlManagement(waitingLonger(engine));
    for (const [op, after] of [
      ["increment", 99],
      ["decrement", 93],
      ["set", 3],
    ] as const) {
      const key = await created(store, clock, { remaining: 100 });
      const holder = await hold(url, key.id, "remaining = remaining - 4");
      const updating = updateRemaining(management, key.id, op, 3);
      await untilWaiting(url);
      await holder.query("COMMIT");
      expect(await updating, op).toMatchObject({ answer: { remaining: after } });
    }
  });

  const atBeginning = databaseNowMs.replace("clock_timestamp()", "statement_timestamp()");
  const untilMidnightMs = 50;

  /**
   * Increments a counter by 1. The statement that waits for its row begins just before midnight, and gets the row after it, by a
   * clock that runs from the statement's beginning.
   */
  async function incrementOverMidnight(clockText: string) {
    const url = await createTestDatabase();
    const store = await openTestStore({ url, lanes: 1, connectionsMax: 2 });
    const midnightMs = Math.ceil(Date.now() / 86_400_000) * 86_400_000;
    const refill = refillRule({ carryOver: true });
    const key = sampleKey(clock, { remaining: 3, refill });
    await createKey(store.management, key);
    await query(url, `UPDATE counters SET refilled_through_ms = ${midnightMs - 86_400_000}`);
    const nowText = `(${clockText} - ${atBeginning} + ${midnightMs - untilMidnightMs})`;
    const engine = openPgEngine({ url, connectionsMax: 1 });
    atTestEnd(() => engine.close());
    const waiter = await connect(url);
    const { change } = createSqlManagement({
      ...engine,
      refilledCounter: (keyId) => pgRefilledCounter(keyId, sql.raw(nowText)),
      // On a connection that waits for a row as long as it takes.
      async atomically(queries) {
        const results: pg.QueryResult[] = [];
        await waiter.query("BEGIN");
        for (const { text, values } of queries.map(toPgStatement)) results.push(await waiter.query(text, [...values]));
        await waiter.query("COMMIT");
        return results.map(({ rows, rowCount }) => ({ rows, changes: rowCount ?? 0 }));
      },
    });
    const holder = await hold(url, key.id, "remaining = remaining");
    const updating = updateRemaining({ change }, key.id, "increment", 1);
    await untilWaiting(url);
    const isPastText = `SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()
      AND clock_timestamp() - query_start > interval '${untilMidnightMs + 10} ms'`;
    while ((await query(url, isPastText)).rowCount === 0) await delay(5);
    await holder.query("COMMIT");
    return updating;
  }

  it("uses the time at which it got the row: a refill that was due then is in it; by the time at its beginning it is not", async () => {
    expect(atBeginning).not.toBe(databaseNowMs);
    const [right, wrong] = await Promise.all([
      incrementOverMidnight(databaseNowMs),
      incrementOverMidnight(atBeginning),
    ]);
    // This connection answers 64-bit integers as texts.
    expect(right).toMatchObject({ answer: { remaining: "14" } });
    expect(wrong).toMatchObject({ answer: { remaining: "4" } });
  });
});
