import { expect, it } from "vitest";
import { counterKeyIfAny, selectKeys, selectKeysOfEndingSecrets } from "../../../src/store/sql/find-keys.ts";
import { openTestEngine, readRows } from "./open-test-engine.ts";

it("a look-up searches keys and counters once each, by primary keys that hold the rows", async () => {
  const { engine, file } = await openTestEngine();
  const { sql } = selectKeys(engine.db, counterKeyIfAny).where("keys.digest", "=", "").compile();
  const steps = readRows(file, `EXPLAIN QUERY PLAN ${sql}`).map(({ detail }) => detail);
  expect(steps).toEqual([
    "SEARCH keys USING PRIMARY KEY (digest=?)",
    "SEARCH counters USING PRIMARY KEY (subject=?) LEFT-JOIN",
  ]);
});

it("a look-up by a secret that was replaced searches it, its key and the counter once each", async () => {
  const { engine, file } = await openTestEngine();
  const query = selectKeysOfEndingSecrets(engine.db, counterKeyIfAny).where("ending_secrets.digest", "=", "");
  const steps = readRows(file, `EXPLAIN QUERY PLAN ${query.compile().sql}`).map(({ detail }) => detail);
  expect(steps).toEqual([
    "SEARCH ending_secrets USING PRIMARY KEY (digest=?)",
    expect.stringMatching(/^SEARCH keys USING INDEX \S+ \(id=\?\)$/),
    "SEARCH counters USING PRIMARY KEY (subject=?) LEFT-JOIN",
  ]);
});
