import { expect, it } from "vitest";
import { counterKeyIfAny, selectKeys } from "../../../src/store/sql/find-keys.ts";
import { openTestEngine, readRows } from "./open-test-engine.ts";

it("a look-up searches keys and counters once each, by primary keys that hold the rows", async () => {
  const { engine, file } = await openTestEngine();
  const { sql } = selectKeys(engine.db, counterKeyIfAny).where("digest", "=", "").compile();
  const steps = readRows(file, `EXPLAIN QUERY PLAN ${sql}`).map(({ detail }) => detail);
  expect(steps).toEqual([
    "SEARCH keys USING PRIMARY KEY (digest=?)",
    "SEARCH key_usage USING PRIMARY KEY (key_id=?) LEFT-JOIN",
  ]);
});
