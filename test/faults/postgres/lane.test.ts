import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it, onTestFinished } from "vitest";
import { Unavailable } from "../../../src/domain/unavailable.ts";
import { openPgEngine } from "../../../src/store/postgres/open-postgres-store.ts";
import { sql } from "../../../src/store/sql/sql.ts";
import { permitAsk } from "../../contract/permit-asks.ts";
import { FaultyProxy } from "../../support/faulty-proxy.ts";
import { ones } from "../../support/ones.ts";
import { PostgresServer } from "../../support/postgres-server.ts";
import { query } from "../../support/run-statement.ts";
import { TestClock } from "../../support/test-clock.ts";
import { hasPostgres } from "../../support/test-database.ts";
import {
  chargedInAll,
  databaseWith,
  ledgerEvents,
  lockRow,
  openLane,
  openPermitLane,
  surely,
  through,
} from "./lane-fixture.ts";

const settled = (granted: number, remaining: number) => ({ outcome: "settled", granted, remaining });

/** Time for as many tries as it takes, however busy the machine is, and little for each lock. */
const patient = { timeoutMs: 20_000, lockMs: 150 };

/** The message that ends every reply of Postgres. */
const readyForQueryBytes = 6;

describe.runIf(hasPostgres)("a lane of the ledger", () => {
  it("answers a repeated batch whose first reply was lost, and charges once", async () => {
    const url = await databaseWith(["k"], 10);
    const proxy = await FaultyProxy.start(Number(new URL(url).port));
    const lane = openLane(through(url, proxy.port), patient);
    expect(await lane.settle([{ subject: "k", cost: 1, count: 1 }])).toEqual([settled(1, 9)]);
    let cutNext = true;
    proxy.onReply = () => {
      const cut = cutNext;
      cutNext = false;
      return cut ? "cut" : "pass";
    };
    expect(await lane.settle([{ subject: "k", cost: 1, count: 2 }])).toEqual([settled(2, 7)]);
    expect(proxy.cuts).toBe(1);
    expect(await chargedInAll(url, 1, 10)).toBe(3);
  });

  it("never takes the result of another lane with the same writer id", async () => {
    const url = await databaseWith(["a", "b"], 1000);
    const lanes = ["a", "b"].map((keyId) => ({ keyId, lane: openLane(url, { writerId: () => "the same" }) }));
    let acknowledged = 0;
    let unknown = 0;
    await Promise.all(
      lanes.map(async ({ keyId, lane }) => {
        for (let i = 0; i < 40; i++) {
          try {
            // In the result of the other, each of them would see "missing", or the numbers of another key.
            const [result] = await lane.settle([{ subject: keyId, cost: 1, count: 1 }]);
            expect(result).toMatchObject({ outcome: "settled", granted: 1 });
            acknowledged++;
          } catch (error) {
            if (!(error instanceof Unavailable)) throw error;
            unknown++;
          }
        }
      }),
    );
    expect(unknown).toBeGreaterThan(0);
    const charged = await chargedInAll(url, 2, 1000);
    expect(charged).toBeGreaterThanOrEqual(acknowledged);
    expect(charged).toBeLessThanOrEqual(acknowledged + unknown);
  });

  it("settles all others when the database refuses one row", async () => {
    const keyIds = Array.from({ length: 20 }, (_, i) => `key_${String(i).padStart(2, "0")}`);
    const url = await databaseWith(keyIds, 5);
    await query(
      url,
      `UPDATE counters SET refill_interval = 'daily', refill_carry_over = 1, refilled_through_ms = 0,
       refill_amount = 9223372036854775807 WHERE subject = 'key_13'`,
    );
    const results = await openLane(url, patient).settle(keyIds.map((keyId) => ({ subject: keyId, cost: 1, count: 1 })));
    const expected = keyIds.map((keyId) =>
      keyId === "key_13" ? { outcome: "failed", reason: expect.any(String) } : settled(1, 4),
    );
    expect(results).toEqual(expected);
    expect(await chargedInAll(url, keyIds.length, 5)).toBe(19);
  });

  it("settles all others when another session has locked one row, which fails alone, uncharged, until it is unlocked", async () => {
    const keyIds = ["a", "b", "c", "d", "e"];
    const url = await databaseWith(keyIds, 10);
    const lane = openLane(url, patient);
    const charges = [...keyIds, "missing"].map((keyId) => ({ subject: keyId, cost: 1, count: 1 }));
    const holder = await lockRow(url, "counters", "c");
    for (const left of [9, 8]) {
      expect(await lane.settle(charges)).toEqual(
        charges.map(({ subject: keyId }) => {
          if (keyId === "missing") return { outcome: "missing" };
          return keyId === "c" ? { outcome: "failed", reason: expect.stringContaining("locked") } : settled(1, left);
        }),
      );
    }
    await holder.release();
    expect(await lane.settle(charges)).toEqual(
      charges.map(({ subject: keyId }) =>
        keyId === "missing" ? { outcome: "missing" } : settled(1, keyId === "c" ? 9 : 7),
      ),
    );
    expect(await chargedInAll(url, keyIds.length, 10)).toBe(4 * 3 + 1);
  });

  it("waits once more for a locked row alone: if it is unlocked then, it is charged, once", async () => {
    const url = await databaseWith(["a", "b"], 10);
    const { metrics, events } = ledgerEvents();
    const lane = openLane(url, { ...patient, metrics });
    await lane.settle([]);
    const holder = await lockRow(url, "counters", "b");
    const settling = lane.settle([
      { subject: "a", cost: 1, count: 1 },
      { subject: "b", cost: 1, count: 2 },
    ]);
    while (!events.includes("locked")) await delay(5);
    await holder.release();
    expect(await settling).toEqual([settled(1, 9), settled(2, 8)]);
    expect(await chargedInAll(url, 2, 10)).toBe(3);
  });

  it("knows after a lost reply which rows were locked, and takes none of them for missing", async () => {
    const url = await databaseWith(["a", "b"], 10);
    const proxy = await FaultyProxy.start(Number(new URL(url).port));
    const { metrics, events } = ledgerEvents();
    const lane = openLane(through(url, proxy.port), { ...patient, metrics });
    await lane.settle([]);
    await lockRow(url, "counters", "b");
    let isCut = false;
    let seenBytes = 0;
    proxy.onReply = ({ bytesFromServer }) => {
      const chunkBytes = bytesFromServer - seenBytes;
      seenBytes = bytesFromServer;
      // The reply to the batch that went around the locked row. Postgres may send the end of the refusal before it alone.
      if (isCut || !events.includes("locked") || chunkBytes <= readyForQueryBytes) return "pass";
      isCut = true;
      return "cut";
    };
    const [a, b] = await lane.settle(["a", "b"].map((keyId) => ({ subject: keyId, cost: 1, count: 1 })));
    expect(a).toEqual(settled(1, 9));
    expect(b).toEqual({ outcome: "failed", reason: expect.stringContaining("locked") });
    expect(events).toContain("recovered");
    expect(await chargedInAll(url, 2, 10)).toBe(1);
  });

  it("sends nothing under another number while an attempt that may be on its way waits for a lock", async () => {
    const url = await databaseWith(["k"], 10);
    const proxy = await FaultyProxy.start(Number(new URL(url).port));
    const { metrics, events } = ledgerEvents();
    const lane = openLane(through(url, proxy.port), { ...patient, metrics, writerId: () => "w" });
    await lane.settle([]);
    const holder = await lockRow(url, "counters", "k");
    const settling = lane.settle([{ subject: "k", cost: 1, count: 1 }]);
    const waiting =
      "SELECT count(*)::int AS n FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()";
    while ((await query(url, waiting)).rows[0].n === 0) await delay(5);
    proxy.cutAll();
    // Its connection was lost; then its repeat was refused, for the lock.
    while (events.filter((event) => event === "retried").length < 2) await delay(5);
    await holder.release();
    expect(await settling).toEqual([settled(1, 9)]);
    expect(events).not.toContain("locked");
    expect((await query(url, "SELECT seq::int FROM usage_writers WHERE id = 'w'")).rows).toEqual([{ seq: 2 }]);
    expect(await chargedInAll(url, 1, 10)).toBe(1);
  });

  it("keeps to its writer when an idle hour ends between two tries of a batch, and charges once", async () => {
    const url = await databaseWith(["k"], 10);
    const proxy = await FaultyProxy.start(Number(new URL(url).port));
    const clock = new TestClock();
    const lane = openLane(through(url, proxy.port), { ...patient, clock });
    await lane.settle([{ subject: "k", cost: 1, count: 1 }]);
    clock.advance(3_600_000);
    let cutNext = true;
    proxy.onReply = () => {
      if (!cutNext) return "pass";
      cutNext = false;
      clock.advance(1);
      return "cut";
    };
    expect(await lane.settle([{ subject: "k", cost: 1, count: 1 }])).toEqual([settled(1, 8)]);
    expect(await chargedInAll(url, 1, 10)).toBe(2);
  });

  it("gives up a batch that hangs, and never applies it later", async () => {
    const url = await databaseWith(["k"], 10);
    const proxy = await FaultyProxy.start(Number(new URL(url).port));
    const lane = openLane(through(url, proxy.port), { timeoutMs: 1000 });
    await surely(() => lane.settle([]));
    // The batch never reaches the server: the link refuses new connections, and the open one is silent.
    proxy.cutAll();
    proxy.refusing = true;
    await expect(lane.settle([{ subject: "k", cost: 1, count: 5 }])).rejects.toThrow(Unavailable);
    proxy.refusing = false;
    expect(await surely(() => lane.settle([{ subject: "k", cost: 1, count: 0 }]))).toEqual([settled(0, 10)]);
  });

  it("takes no other warning for an unconfirmed commit", async () => {
    const url = await databaseWith(["k"], 10);
    await query(
      url,
      `CREATE FUNCTION warn() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE WARNING 'look'; RETURN NULL; END $$;
       CREATE TRIGGER warn AFTER UPDATE ON counters FOR EACH STATEMENT EXECUTE FUNCTION warn()`,
    );
    const lane = openLane(url, { timeoutMs: 20_000 });
    expect(await lane.settle([{ subject: "k", cost: 1, count: 1 }])).toEqual([settled(1, 9)]);
  });

  it("does not count time in which this process was late", async () => {
    const url = await databaseWith(["k"], 10);
    const proxy = await FaultyProxy.start(Number(new URL(url).port));
    const { metrics, events } = ledgerEvents();
    const clock = new TestClock();
    const timeoutMs = 50;
    const lane = openLane(through(url, proxy.port), { clock, metrics, timeoutMs });
    const spend = () => lane.settle([{ subject: "k", cost: 1, count: 1 }]);
    expect(await spend()).toEqual([settled(1, 9)]);
    proxy.holding = "answers";
    const late = spend();
    await delay(1);
    clock.advanceLate(1000);
    // Its timer fires meanwhile.
    await delay(4 * timeoutMs);
    proxy.holding = undefined;
    expect(await late).toEqual([settled(1, 8)]);
    expect(events).toEqual([]);
    // The control: the ledger was late.
    proxy.holding = "answers";
    const lost = expect(spend()).rejects.toThrow(Unavailable);
    await delay(1);
    clock.advance(1000);
    await lost;
    expect(events).toEqual(["given-up"]);
  });

  it("treats a commit that the standby has not confirmed as unknown", async () => {
    const server = await PostgresServer.start();
    onTestFinished(() => server.remove());
    const source = await databaseWith(["k"], 10);
    // A server of its own, whose standby does not exist: a commit waits until the wait is cancelled.
    const url = server.url();
    await copyTables(source, url);
    await query(url, "ALTER SYSTEM SET synchronous_standby_names = 'nobody'");
    server.reload();
    const lane = openLane(url, { timeoutMs: 20_000 });
    const spending = lane.settle([{ subject: "k", cost: 1, count: 1 }]);
    const cancelling = setInterval(() => {
      const waiting = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
      query(url, waiting).catch(() => {});
    }, 10);
    onTestFinished(() => clearInterval(cancelling));
    await expect(spending).rejects.toThrow(Unavailable);
    const permits = openPermitLane(url, { timeoutMs: 20_000 });
    await expect(permits.exchange([{ subject: "k", ...permitAsk({ waiting: ones(1) }) }])).rejects.toThrow(Unavailable);
    // The same through the pool: creating and deleting keys.
    const engine = openPgEngine({ url, connectionsMax: 1 });
    onTestFinished(() => engine.close());
    const change = sql`UPDATE counters SET remaining = remaining`;
    await expect(engine.atomically([change])).rejects.toThrow(Unavailable);
  });
});

/** Creates the ledger's tables and rows on another server. */
async function copyTables(from: string, to: string): Promise<void> {
  const { rows } = await query(from, "SELECT subject, remaining FROM counters");
  await query(
    to,
    `CREATE TABLE counters (subject text PRIMARY KEY, remaining bigint, refill_interval text, refill_amount bigint,
       refill_carry_over int, refilled_through_ms bigint, credited bigint, metered_hour bigint, metered_since_ms bigint, former_spent bigint);
     CREATE TABLE readings (subject text, hour bigint, spent bigint, PRIMARY KEY (subject, hour));
     CREATE TABLE permit_windows (subject text PRIMARY KEY, gen bigint, ends_at_ms bigint, granted bigint, spent bigint,
       contended int, rule_limit bigint, rule_duration_ms bigint);
     CREATE TABLE usage_writers (id text PRIMARY KEY, seq bigint, nonce text, result jsonb, updated_at timestamptz);
     ${rows.map((row) => `INSERT INTO counters VALUES ('${row.subject}', ${row.remaining}, NULL, NULL, NULL, NULL, ${row.remaining}, 0, 0, 0);`).join("")}`,
  );
}
