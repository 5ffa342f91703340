import { describe, expect, it, onTestFinished } from "vitest";
import { createLog } from "../../src/ambient/log.ts";
import { createMetrics } from "../../src/ambient/metrics.ts";
import { LedgerWatch } from "../../src/store/ledger-watch.ts";
import { openSqliteStore } from "../../src/store/sqlite/open-sqlite-store.ts";
import type { Store } from "../../src/store/store.ts";
import { createdStrict, permitAsk } from "../contract/permit-asks.ts";
import { exchange, settle } from "../contract/settle.ts";
import { ones } from "../support/ones.ts";
import { openTestStore } from "../support/open-test-store.ts";
import { TestClock } from "../support/test-clock.ts";
import { hasPostgres } from "../support/test-database.ts";
import { testOptions } from "./sqlite/open-test-engine.ts";

const hourMs = 3_600_000;

function watchOn(clock: TestClock) {
  const lines: Record<string, unknown>[] = [];
  const log = createLog("info", (line) => lines.push(JSON.parse(line)));
  const metrics = createMetrics();
  const watch = new LedgerWatch({ clock, log, metrics }, () => 0);
  const counted = async (name: string) => (await metrics.render()).match(new RegExp(`^${name}.* ([0-9]+)$`, "m"))?.[1];
  return { watch, lines, counted };
}

describe("the watch on the ledger's clock", () => {
  it.runIf(hasPostgres)("tells of each jump once, with its size, from replies of the lanes to Postgres", async () => {
    const clock = new TestClock();
    const { watch, lines, counted } = watchOn(clock);
    const store = await openTestStore({ connectionsMax: 2, clock, ledgerClock: clock, watch });
    await jumpBackAndForth(store, clock);
    expect(lines).toMatchObject(jumps);
    expect(await counted('latchkey_ledger_clock_jumps_total\\{direction="backward"')).toBe("1");
    expect(await counted('latchkey_ledger_clock_jumps_total\\{direction="forward"')).toBe("1");
  });

  it("tells of them on the embedded store too, whose refills follow the wall clock", async () => {
    const { options, clock } = testOptions();
    const { watch, lines } = watchOn(clock);
    const store = await openSqliteStore({ ...options, watch });
    onTestFinished(() => store.close());
    await jumpBackAndForth(store, clock);
    expect(lines).toMatchObject(jumps);
  });

  it("tells of counters that were refilled too early, once a minute, and counts them", async () => {
    const clock = new TestClock();
    const { watch, lines, counted } = watchOn(clock);
    for (let i = 0; i < 5; i++) watch.onRefillAhead(hourMs);
    clock.advance(60_000);
    watch.onRefillAhead(hourMs - 60_000);
    // As it can be around midnight after a failover to a clock that is a little behind.
    watch.onRefillAhead(4000);
    expect(lines).toMatchObject([
      { level: "warn", msg: expect.stringContaining("refilled too early"), aheadMs: hourMs, settlements: 1 },
      { level: "warn", aheadMs: hourMs - 60_000, settlements: 5 },
    ]);
    expect(await counted("latchkey_refills_ahead_total")).toBe("6");
  });
});

const msg = "the ledger's clock jumped";
const jumps = [
  { level: "warn", msg, direction: "backward", byMs: expect.closeTo(hourMs, -2) },
  { level: "warn", msg, direction: "forward", byMs: expect.closeTo(hourMs, -2) },
];

async function jumpBackAndForth(store: Store, clock: TestClock): Promise<void> {
  const key = await createdStrict(store, clock, 10);
  const asks = [{ subject: key.id, ...permitAsk({ waiting: ones(1) }) }];
  const use = async () => {
    await settle(store, [{ subject: "unknown", cost: 1, count: 1 }]);
    await exchange(store, asks);
    clock.advance(100);
  };
  for (const byMs of [0, -hourMs, hourMs]) {
    clock.stepTo(clock.nowMs() + byMs);
    for (let i = 0; i < 3; i++) await use();
  }
}
