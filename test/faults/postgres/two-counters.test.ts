import { setTimeout as delay } from "node:timers/promises";
import pg from "pg";
import { describe, expect, it, vi } from "vitest";
import { systemClock } from "../../../src/ambient/clock.ts";
import { createMetrics } from "../../../src/ambient/metrics.ts";
import { WaitingRoom } from "../../../src/domain/waiting-room.ts";
import { CoalescingUsageLedger } from "../../../src/store/coalescing-usage-ledger.ts";
import { GuardedLane } from "../../../src/store/postgres/guarded-lane.ts";
import type { LaneStatement } from "../../../src/store/postgres/guarded-statement.ts";
import { settlingRuns, type UsageRow } from "../../../src/store/postgres/usage-lane.ts";
import type { Charge, SettledCharge, SpentCounters, UsageEngine } from "../../../src/store/usage-ledger.ts";
import { FaultyProxy } from "../../support/faulty-proxy.ts";
import { query } from "../../support/run-statement.ts";
import { hasPostgres } from "../../support/test-database.ts";
import { atTestEnd } from "../../support/test-end.ts";
import { databaseWith, laneOptions, ledgerEvents, lockRow, openLane, through } from "./lane-fixture.ts";

/** Time for as many tries as it takes, however busy the machine is, and little for each lock. */
const patient = { timeoutMs: 20_000, lockMs: 150 };

const both = (subject: string, shared: string, cost: number, count = 1): Charge => ({ subject, shared, cost, count });
const one = (subject: string, cost: number, count = 1): Charge => ({ subject, cost, count });
const settled = (granted: number, remaining: number) => ({ outcome: "settled", granted, remaining });
const settledBoth = (granted: number, remaining: number, sharedRemaining: number) => ({
  ...settled(granted, remaining),
  sharedRemaining,
});
const lockedOut = { outcome: "failed", reason: expect.stringContaining("locked") };

async function balances(url: string): Promise<Record<string, number>> {
  const { rows } = await query(url, "SELECT subject, remaining::int FROM counters");
  return Object.fromEntries(rows.map(({ subject, remaining }) => [subject, remaining]));
}

/** Cuts the next reply. */
function cutNext(proxy: FaultyProxy): void {
  let isCut = false;
  proxy.onReply = () => {
    if (isCut) return "pass";
    isCut = true;
    return "cut";
  };
}

describe.runIf(hasPostgres)("a charge on two counters", () => {
  /** In this order the first two callers are granted their cost, in the other order the last: the balances are 0 then too. */
  const contested = [both("a", "o", 2, 2), both("a", "o", 4)];
  const inOrder = [settledBoth(2, 0, 0), settledBoth(0, 0, 0)];

  it("whose reply was lost is repeated with the same answers, and charged once", async () => {
    const url = await databaseWith(["a", "o"], 4);
    const proxy = await FaultyProxy.start(Number(new URL(url).port));
    const { metrics, events } = ledgerEvents();
    const lane = openLane(through(url, proxy.port), { ...patient, metrics });
    await lane.settle([]);
    cutNext(proxy);
    expect(await lane.settle(contested)).toEqual(inOrder);
    expect(events).toContain("recovered");
    expect(await balances(url)).toEqual({ a: 0, o: 0 });
    // What is kept of it is one row per counter, however many callers it has had.
    const { rows } = await query(url, "SELECT result FROM usage_writers WHERE seq > 0 ORDER BY seq DESC");
    expect(rows[0].result).toHaveLength(2);
  });

  it("gets other answers from a lane that repeats in another order: this very test notices", async () => {
    const url = await databaseWith(["a", "o"], 4);
    const proxy = await FaultyProxy.start(Number(new URL(url).port));
    let sent = 0;
    let order: readonly Charge[] = [];
    const reordered: LaneStatement<Charge, UsageRow, SettledCharge> = {
      ...settlingRuns,
      valuesOf(charges) {
        order = sent++ === 0 ? charges : charges.toReversed();
        return settlingRuns.valuesOf(order);
      },
      resultsOf(charges, rows) {
        const results = settlingRuns.resultsOf(order, rows);
        return results === "mismatch" || order === charges ? results : results.toReversed();
      },
    };
    const lane = new GuardedLane<Charge, UsageRow, SettledCharge>(laneOptions(through(url, proxy.port), patient));
    atTestEnd(() => lane.close());
    await lane.connect();
    await lane.apply([one("none", 1)], reordered);
    sent = 0;
    cutNext(proxy);
    expect(await lane.apply(contested, reordered)).not.toEqual(inOrder);
    expect(await balances(url)).toEqual({ a: 0, o: 0 });
  });

  it("is refused as a whole if the numbers in the database are not those that its charges come to", async () => {
    const url = await databaseWith(["a", "o"], 10);
    await query(
      url,
      `CREATE FUNCTION forge() RETURNS trigger LANGUAGE plpgsql AS
         'BEGIN NEW.result = jsonb_set(NEW.result, ''{0,2}'', ''7''); RETURN NEW; END';
       CREATE TRIGGER forge BEFORE UPDATE ON usage_writers FOR EACH ROW EXECUTE FUNCTION forge()`,
    );
    const proxy = await FaultyProxy.start(Number(new URL(url).port));
    const { metrics, events } = ledgerEvents();
    const lane = openLane(through(url, proxy.port), { ...patient, metrics });
    await lane.connect();
    await lane.settle([one("none", 2)]).catch(() => {});
    cutNext(proxy);
    await expect(lane.settle([both("a", "o", 2)])).rejects.toThrow("by another rule");
    expect(events).toContain("mismatch");
  });

  it.each(["o", "b"])("fails uncharged while another session has locked %s, and disturbs no other", async (locked) => {
    const url = await databaseWith(["a", "b", "c", "o"], 10);
    const lane = openLane(url, patient);
    const charges = [
      both("a", "o", 2),
      both("b", "o", 1),
      one("c", 3),
      both("a", "o", 5),
      one("b", 4),
      both("c", "none", 1),
    ];
    const holder = await lockRow(url, "counters", locked);
    const missing = { outcome: "missing" };
    expect(await lane.settle(charges)).toEqual(
      locked === "o"
        ? [lockedOut, lockedOut, settled(1, 7), lockedOut, settled(1, 6), missing]
        : [settledBoth(1, 8, 8), lockedOut, settled(1, 7), settledBoth(1, 3, 3), lockedOut, missing],
    );
    await holder.release();
    expect(await balances(url)).toEqual(locked === "o" ? { a: 10, b: 6, c: 7, o: 10 } : { a: 3, b: 10, c: 7, o: 3 });
    expect(await lane.settle([both("b", "o", 1)])).toEqual([
      locked === "o" ? settledBoth(1, 5, 9) : settledBoth(1, 9, 2),
    ]);
  });

  it.each(["o", "b"])("fails uncharged if the database refuses the row of %s, and disturbs no other", async (bad) => {
    const url = await databaseWith(["a", "b", "c", "o"], 10);
    await query(
      url,
      `UPDATE counters SET refill_interval = 'daily', refill_carry_over = 1, refilled_through_ms = 0,
       refill_amount = 9223372036854775807 WHERE subject = '${bad}'`,
    );
    const failed = { outcome: "failed", reason: expect.stringContaining("refuses") };
    const charges = [both("a", "o", 2), both("b", "o", 1, 3), one("c", 3), both("a", "o", 5), both("b", "o", 2)];
    expect(await openLane(url, patient).settle(charges)).toEqual(
      bad === "o"
        ? [failed, failed, settled(1, 7), failed, failed]
        : [settledBoth(1, 8, 8), failed, settled(1, 7), settledBoth(1, 3, 3), failed],
    );
    expect(await balances(url)).toEqual(bad === "o" ? { a: 10, b: 10, c: 7, o: 10 } : { a: 3, b: 10, c: 7, o: 3 });
  });
});

describe.runIf(hasPostgres)("several replicas that charge keys, their owner, and both", () => {
  const remaining = 1_000_000;
  /** In the order of their names the owner lies between its keys. */
  const loads: readonly SpentCounters[] = [["k1", "o"], ["z2", "o"], ["z2"], ["k1"], ["z3", "o"], ["o"]];

  async function databaseThatLooksForCircles(): Promise<string> {
    const url = await databaseWith(["k1", "o", "z2", "z3"], remaining);
    await query(url, `ALTER DATABASE ${new URL(url).pathname.slice(1)} SET deadlock_timeout = '10ms'`);
    return url;
  }

  /** Spends on all ledgers at once. Answers what was taken from each counter, by the answers. */
  async function spendOn(ledgers: readonly CoalescingUsageLedger[], times: number): Promise<Record<string, number>> {
    const taken: Record<string, number> = {};
    const caller = async (ledger: CoalescingUsageLedger, index: number) => {
      for (let i = 0; i < times; i++) {
        const counters = loads[(index + i) % loads.length] as SpentCounters;
        const cost = 1 + ((index * 5 + i) % 7);
        if ((await ledger.spend(counters, cost)).outcome !== "spent") throw new Error("there is enough");
        for (const counter of counters) taken[counter] = (taken[counter] ?? 0) + cost;
      }
    };
    await Promise.all(ledgers.flatMap((ledger, i) => Array.from({ length: 12 }, (_, j) => caller(ledger, i + j))));
    return taken;
  }

  function ledgerOn(engines: readonly UsageEngine[]): CoalescingUsageLedger {
    return new CoalescingUsageLedger(engines, {
      clock: systemClock,
      metrics: createMetrics(),
      waitingRoom: new WaitingRoom(1000),
    });
  }

  async function deadlocks(url: string): Promise<number> {
    const { rows } = await query(url, "SELECT deadlocks::int FROM pg_stat_database WHERE datname = current_database()");
    return rows[0].deadlocks;
  }

  it("wait for each other in no circle, and every counter has lost what was answered", async () => {
    const url = await databaseThatLooksForCircles();
    const lanes = Array.from({ length: 6 }, () => openLane(url, { timeoutMs: 20_000 }));
    const ledgers = [0, 2, 4].map((i) => ledgerOn(lanes.slice(i, i + 2)));
    const taken = await spendOn(ledgers, 40);
    expect(await balances(url)).toEqual(
      Object.fromEntries(Object.entries(taken).map(([counter, units]) => [counter, remaining - units])),
    );
    // A server process tells its numbers when its connection ends, at the latest.
    for (const lane of lanes) lane.close();
    await vi.waitFor(async () => expect(await sessions(url)).toBe(1), { timeout: 60_000 });
    expect(await deadlocks(url)).toBe(0);
  });

  it("deadlock in this very test if a join locks the counters in the order of its rows", async () => {
    const url = await databaseThatLooksForCircles();
    const engines = await Promise.all(Array.from({ length: 6 }, () => rowOrderEngine(url)));
    const ledgers = [0, 2, 4].map((i) => ledgerOn(engines.slice(i, i + 2)));
    for (let round = 0; round < 20 && (await deadlocks(url)) === 0; round++) await spendOn(ledgers, 10);
    await vi.waitFor(async () => expect(await deadlocks(url)).toBeGreaterThan(0), { timeout: 60_000 });
  });

  async function sessions(url: string): Promise<number> {
    const { rows } = await query(
      url,
      "SELECT count(*)::int AS n FROM pg_stat_activity WHERE datname = current_database()",
    );
    return rows[0].n;
  }

  /** Locks each charge's counters as its row comes, and charges all that is wanted. It tries again after a deadlock. */
  async function rowOrderEngine(url: string): Promise<UsageEngine> {
    const client = new pg.Client({ connectionString: url });
    atTestEnd(() => client.end());
    await client.connect();
    const lock = `SELECT FROM unnest($1::text[], $2::text[]) AS u (own, shared)
      JOIN counters k ON k.subject = u.own JOIN counters o ON o.subject = u.shared ORDER BY k.subject FOR UPDATE OF k, o`;
    const update = "UPDATE counters SET remaining = remaining - $2 WHERE subject = $1";
    const settleOnce = async (charges: readonly Charge[]) => {
      await client.query("BEGIN");
      await client.query(lock, [
        charges.map(({ subject }) => subject),
        charges.map(({ subject, shared = subject }) => shared),
      ]);
      for (const { subject, shared, cost, count } of charges) {
        for (const counter of shared === undefined ? [subject] : [subject, shared])
          await client.query(update, [counter, cost * count]);
      }
      await client.query("COMMIT");
    };
    return {
      async settle(charges) {
        for (;;) {
          try {
            await settleOnce(charges);
            return charges.map(({ count, shared }) => ({
              outcome: "settled",
              granted: count,
              remaining: 1,
              ...(shared !== undefined && { sharedRemaining: 1 }),
            }));
          } catch {
            await client.query("ROLLBACK");
            await delay(1);
          }
        }
      },
    };
  }
});
