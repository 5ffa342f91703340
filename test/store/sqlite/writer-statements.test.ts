import { describe, expect, it } from "vitest";
import { CheckViolation } from "../../../src/store/sql/sql-engine.ts";
import { sampleKey } from "../../contract/sample-keys.ts";
import { createKey } from "../../support/manage.ts";
import { openTestEngine, readRows } from "./open-test-engine.ts";

const asked = (sql: string, ...parameters: number[]) => ({ sql, parameters });

describe("statements that the writer thread knows by number", () => {
  it("answer rows by the names of their columns, each time, also after more texts than it keeps", async () => {
    const { writer } = (await openTestEngine()).engine;
    const texts = Array.from({ length: 450 }, (_, n) => `SELECT ? AS column_${n}, ${n} AS other`);
    const answers = async () => {
      // Many share a commit, in which the numbers must not change.
      const all = await Promise.all(texts.map((sql, n) => writer.run([asked(sql, n)])));
      return all.map((results) => results[0]?.rows);
    };
    const expected = texts.map((_, n) => [{ [`column_${n}`]: n, other: n }]);
    for (let times = 0; times < 3; times++) expect(await answers()).toEqual(expected);
    for (const [n, sql] of texts.entries()) expect((await writer.run([asked(sql, n)]))[0]?.rows).toEqual(expected[n]);
  });

  it("answer as usual after a first time at which another statement had failed", async () => {
    const { clock, engine, keys } = await openTestEngine();
    await createKey(keys, sampleKey(clock, { remaining: 5 }));
    const read = asked("SELECT remaining AS before, remaining - 1 AS later FROM counters");
    const spoil = asked("UPDATE counters SET remaining = ?", -1);
    await expect(engine.writer.run([spoil, read])).rejects.toThrow(CheckViolation);
    await expect(engine.writer.run([read, spoil])).rejects.toThrow(CheckViolation);
    for (let times = 0; times < 2; times++) {
      expect(await engine.writer.run([read])).toEqual([{ rows: [{ before: 5, later: 4 }], changes: 0 }]);
    }
  });
});

it("a job alone in its transaction leaves nothing behind when it fails, and keeps nothing locked", async () => {
  const { file, clock, engine, keys, commits } = await openTestEngine();
  await createKey(keys, sampleKey(clock, { remaining: 5 }));
  const spend = asked("UPDATE counters SET remaining = remaining - ?", 3);
  await expect(engine.writer.run([spend, spend])).rejects.toThrow(CheckViolation);
  expect(commits.at(-1)).toBe(1);
  expect(readRows(file, "SELECT remaining FROM counters")).toEqual([{ remaining: 5n }]);
  await engine.writer.run([spend]);
  expect(readRows(file, "SELECT remaining FROM counters")).toEqual([{ remaining: 2n }]);
});
