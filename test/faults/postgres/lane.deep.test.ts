import { describe, expect, it } from "vitest";
import { query } from "../../support/run-statement.ts";
import { hasPostgres } from "../../support/test-database.ts";
import { databaseWith, openLane } from "./lane-fixture.ts";

const settled = (granted: number, remaining: number) => ({ outcome: "settled", granted, remaining });

describe.runIf(hasPostgres)("a lane of the ledger", () => {
  it("has time for a commit that takes most of the deadline", async () => {
    const url = await databaseWith(["k"], 10);
    await query(
      url,
      `CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.15); RETURN NEW; END';
       CREATE TRIGGER slow BEFORE UPDATE ON usage_writers FOR EACH ROW EXECUTE FUNCTION slow()`,
    );
    const lane = openLane(url, { timeoutMs: 2000 });
    for (let left = 9; left > 6; left--)
      expect(await lane.settle([{ subject: "k", cost: 1, count: 1 }])).toEqual([settled(1, left)]);
  });
});
