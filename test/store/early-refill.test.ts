import { DatabaseSync } from "node:sqlite";
import { describe, expect, it, onTestFinished } from "vitest";
import type { NewKey } from "../../src/domain/key.ts";
import { boundaryIndex, boundaryMs } from "../../src/domain/refill-calendar.ts";
import { openSqliteStore } from "../../src/store/sqlite/open-sqlite-store.ts";
import type { Store } from "../../src/store/store.ts";
import { refillRule } from "../contract/sample-keys.ts";
import { charge, created, settled } from "../contract/usage-cases.ts";
import { openTestStore } from "../support/open-test-store.ts";
import { readText } from "../support/repository.ts";
import { query } from "../support/run-statement.ts";
import { TestClock } from "../support/test-clock.ts";
import { createTestDatabase, hasPostgres } from "../support/test-database.ts";
import { testOptions } from "./sqlite/open-test-engine.ts";

const intervals = ["daily", "monthly"] as const;

describe("the remedy for refills that came too early, as the docs have it, lets the next one come", () => {
  it("on the embedded store", async () => {
    const { options, clock } = testOptions();
    clock.stepTo(Date.now());
    const before = await openSqliteStore(options);
    const counters = await refilledEarly(before, clock);
    await before.close();
    const db = new DatabaseSync(options.file);
    db.exec(remedyFor("Embedded"));
    db.close();
    const after = await openSqliteStore(options);
    onTestFinished(() => after.close());
    await expectNextRefill(after, clock, counters);
  });

  it.runIf(hasPostgres)("on Postgres, while it serves", async () => {
    const clock = new TestClock(Date.now());
    const url = await createTestDatabase();
    const store = await openTestStore({ url, connectionsMax: 2, lanes: 1, clock, ledgerClock: clock });
    const counters = await refilledEarly(store, clock);
    await query(url, remedyFor("Postgres"));
    await expectNextRefill(store, clock, counters);
  });
});

function remedyFor(engine: string): string {
  const [, sql] = readText("docs/operations.md").match(new RegExp(`\`\`\`sql\n-- ${engine}.*\n([^\`]*)\`\`\``)) ?? [];
  return sql ?? expect.fail(`no remedy for ${engine} in the docs`);
}

function nextBoundaryMs(clock: TestClock, interval: (typeof intervals)[number]): number {
  return boundaryMs(interval, boundaryIndex(interval, clock.nowMs()) + 1);
}

/** Counters that a clock ahead of time has refilled, by a clock that is right again. */
async function refilledEarly(store: Store, clock: TestClock): Promise<NewKey[]> {
  const nowMs = clock.nowMs();
  const counters: NewKey[] = [];
  for (const interval of intervals) {
    clock.stepTo(nowMs);
    const key = await created(store, clock, { remaining: 0, refill: refillRule({ interval }) });
    clock.stepTo(nextBoundaryMs(clock, interval));
    expect(await charge(store, key, 10)).toEqual(settled(10, 0));
    counters.push(key);
  }
  clock.stepTo(nowMs);
  return counters;
}

async function expectNextRefill(store: Store, clock: TestClock, counters: readonly NewKey[]): Promise<void> {
  const nowMs = clock.nowMs();
  for (const [i, interval] of intervals.entries()) {
    clock.stepTo(nowMs);
    expect(await charge(store, counters[i] as NewKey, 1)).toEqual(settled(0, 0));
    clock.stepTo(nextBoundaryMs(clock, interval));
    expect(await charge(store, counters[i] as NewKey, 1)).toEqual(settled(1, 9));
  }
}
