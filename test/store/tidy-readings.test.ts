import { describe, expect, it } from "vitest";
import { counterOfOwner } from "../../src/domain/subject.ts";
import { hourMs } from "../../src/domain/usage.ts";
import { readSpending } from "../../src/store/sql/read-spending.ts";
import { type Sql, sql } from "../../src/store/sql/sql.ts";
import type { SqlEngine } from "../../src/store/sql/sql-engine.ts";
import { tidyReadings } from "../../src/store/sql/tidy.ts";
import { tableEngines } from "./table-engines.ts";

const dayMs = 24 * hourMs;
/** That hour of that day. */
const at = (day: number, hour: number) => day * 24 + hour;

interface Reading {
  readonly subject: string;
  readonly hour: number;
  readonly spent: number;
}

/** Readings of a counter at those hours. */
function readingsAt(subject: string, ...hours: readonly number[]): Reading[] {
  return hours.map((hour, i) => ({ subject, hour, spent: 10 * i }));
}

const owner = counterOfOwner("one");
/** Bounds in the middle of days, which are kept whole. */
const bounds = { hoursBeforeMs: 50 * dayMs + 13 * hourMs, daysBeforeMs: 10 * dayMs + hourMs };

const kept = [
  ...readingsAt("used", at(10, 0), at(20, 2), at(30, 7), at(49, 0), at(50, 0), at(50, 1), at(50, 5), at(60, 1)),
  // Its counter is gone: the last one has all that it had spent.
  ...readingsAt("gone", at(20, 1), at(20, 9)),
  ...readingsAt(owner, at(20, 0), at(60, 0)),
];
const removed = [
  ...readingsAt("used", at(5, 3), at(9, 23), at(10, 5), at(20, 3), at(20, 23), at(49, 1), at(49, 23)),
  ...readingsAt("gone", at(20, 2)),
  ...readingsAt(owner, at(8, 4), at(20, 3), at(20, 5), at(20, 4)),
  ...readingsAt("gone for years", at(9, 23)),
];
/** What was spent grows by 10 from one to the next. */
const all = Object.values(Object.groupBy([...removed, ...kept], ({ subject }) => subject)).flatMap((own = []) =>
  own.toSorted((a, b) => a.hour - b.hour).map((each, i) => ({ ...each, spent: 10 * i })),
);
const placesOf = (readings: readonly Pick<Reading, "subject" | "hour">[]) =>
  readings.map(({ subject, hour }) => `${subject} ${hour}`).sort();
const keptPlaces = placesOf(kept);

async function add(engine: SqlEngine, readings: readonly Reading[]): Promise<void> {
  for (let from = 0; from < readings.length; from += 1000) {
    const rows = readings
      .slice(from, from + 1000)
      .map(({ subject, hour, spent }) => sql`(${subject}, ${sql.lit(hour)}, ${sql.lit(spent)})`);
    await engine.atomically([sql`INSERT INTO readings (subject, hour, spent) VALUES ${sql.join(rows)}`]);
  }
}

async function places(engine: SqlEngine): Promise<string[]> {
  return placesOf(await engine.read<Reading>(sql`SELECT subject, hour FROM readings`));
}

async function keptOf(engine: SqlEngine): Promise<unknown> {
  return engine.read(sql`SELECT first_hour, first_day_hour FROM readings_kept`);
}

describe.each(tableEngines)("readings of the past on $name", ({ open }) => {
  const openWith = async (readings: readonly Reading[]) => {
    const engine = await open();
    await add(engine, readings);
    return engine;
  };

  it("are thinned to the first of each day, the last of each subject and those of former owners", async () => {
    const engine = await openWith(all);
    await tidyReadings(engine, bounds);
    expect(await places(engine)).toEqual(keptPlaces);
    expect(await keptOf(engine)).toEqual([{ first_hour: at(50, 0), first_day_hour: at(10, 0) }]);
    // Nothing more the next time.
    await tidyReadings(engine, bounds);
    expect(await places(engine)).toEqual(keptPlaces);
  });

  it("that are thinned leave what was spent on each day, and in each hour of the days that are kept whole", async () => {
    const engine = await openWith(all);
    await engine.atomically([
      sql`INSERT INTO counters (subject, remaining, credited, metered_hour) VALUES ('used', 5, 1000, ${at(60, 1)})`,
    ]);
    const days = Array.from({ length: 55 }, (_, i) => at(10 + i, 0));
    const hours = [...days, ...Array.from({ length: 15 * 24 }, (_, i) => at(50, i))];
    const spent = async (of: "key" | "owner", ids: readonly string[]) => {
      const { counters } = await readSpending(engine, { kind: "spending", of, ids, hours });
      return counters.map((each) => each && { spent: each.spent, spentBefore: each.spentBefore });
    };
    const everything = () => Promise.all([spent("key", ["used", "gone"]), spent("owner", ["one"])]);
    const before = await everything();
    expect(before[0]?.map((each) => each?.spent)).toEqual([995, 20]);
    expect(new Set(before[0]?.[0]?.spentBefore).size).toBeGreaterThan(6);
    await tidyReadings(engine, bounds);
    expect((await places(engine)).length).toBeLessThan(all.length);
    expect(await everything()).toEqual(before);
    // The control: without the first one of a day, a day would have spent something else.
    await engine.atomically([sql`DELETE FROM readings WHERE subject = 'used' AND hour = ${at(20, 2)}`]);
    expect(await everything()).not.toEqual(before);
  });

  it("are said to be kept from then on, and from no earlier hour when a setting is raised", async () => {
    const engine = await openWith(all);
    await tidyReadings(engine, bounds);
    const earlier = { hoursBeforeMs: 40 * dayMs, daysBeforeMs: 8 * dayMs };
    // So that something is removed.
    const needless = readingsAt("used", at(20, 5));
    await add(engine, needless);
    await tidyReadings(engine, earlier);
    expect(await places(engine)).toEqual(keptPlaces);
    expect(await keptOf(engine)).toEqual([{ first_hour: at(50, 0), first_day_hour: at(10, 0) }]);
    // Each for itself.
    await tidyReadings(engine, { ...earlier, daysBeforeMs: 15 * dayMs });
    expect(await keptOf(engine)).toEqual([{ first_hour: at(50, 0), first_day_hour: at(15, 0) }]);
    expect(await places(engine)).toEqual(keptPlaces.filter((place) => place !== `used ${at(10, 0)}`));
    await add(engine, needless);
    await tidyReadings(engine, { hoursBeforeMs: 55 * dayMs, daysBeforeMs: 15 * dayMs });
    expect(await keptOf(engine)).toEqual([{ first_hour: at(55, 0), first_day_hour: at(15, 0) }]);
  });

  it("are not said to be gone while none was removed", async () => {
    const engine = await openWith(readingsAt("used", at(20, 1), at(21, 1), at(60, 2)));
    await tidyReadings(engine, bounds);
    expect(await keptOf(engine)).toEqual([]);
    await tidyReadings(engine, { ...bounds, daysBeforeMs: 21 * dayMs });
    expect(await keptOf(engine)).toEqual([{ first_hour: at(50, 0), first_day_hour: at(21, 0) }]);
    expect(await places(engine)).toEqual(placesOf(readingsAt("used", at(21, 1), at(60, 2))));
  });

  it("of any number of subjects are thinned, some hundred subjects at a time", async () => {
    // Letters that languages put in other places, too.
    const subjects = Array.from({ length: 1203 }, (_, i) => `${"aZéc/"[i % 5]}${i}`);
    const engine = await openWith(subjects.flatMap((subject) => readingsAt(subject, at(20, 1), at(20, 2), at(20, 3))));
    const removed: number[] = [];
    const atomically = async (statements: readonly Sql[]) => {
      const results = await engine.atomically(statements);
      removed.push(results.at(-1)?.changes ?? 0);
      return results;
    };
    await tidyReadings({ ...engine, atomically }, bounds);
    expect(removed).toEqual([500, 500, 203]);
    const left = subjects.flatMap((subject) => readingsAt(subject, at(20, 1), at(20, 3)));
    expect(await places(engine)).toEqual(placesOf(left));
  });
});
