import { expect, it } from "vitest";
import {
  counterKeyIfAny,
  ownerCounterIfAny,
  selectKeys,
  selectKeysOfEndingSecrets,
  selectOwners,
} from "../../../src/store/sql/find-rows.ts";
import { type Sql, sql } from "../../../src/store/sql/sql.ts";
import { toStatement } from "../../../src/store/sqlite/writer-protocol.ts";
import { openTestEngine, readRows } from "./open-test-engine.ts";

/** Only of a key that names an owner. */
const ownersSearch = ["CORRELATED SCALAR SUBQUERY 1", "SEARCH owners USING PRIMARY KEY (id=?)"];

function stepsOf(file: string, query: Sql): unknown[] {
  return readRows(file, `EXPLAIN QUERY PLAN ${toStatement(query).sql}`).map(({ detail }) => detail);
}

it("a look-up searches keys, counters and owners once each, by primary keys that hold the rows", async () => {
  const { file } = await openTestEngine();
  const steps = stepsOf(file, selectKeys(sql`keys.digest = ${""}`, { counterKey: counterKeyIfAny }));
  expect(steps).toEqual([
    "SEARCH keys USING PRIMARY KEY (digest=?)",
    "SEARCH counters USING PRIMARY KEY (subject=?) LEFT-JOIN",
    ...ownersSearch,
  ]);
});

it("a look-up by a secret that was replaced searches it, its key, the counter and the owner once each", async () => {
  const { file } = await openTestEngine();
  const query = selectKeysOfEndingSecrets(sql`ending_secrets.digest = ${""}`, { counterKey: counterKeyIfAny });
  const steps = stepsOf(file, query);
  expect(steps).toEqual([
    "SEARCH ending_secrets USING PRIMARY KEY (digest=?)",
    expect.stringMatching(/^SEARCH keys USING INDEX \S+ \(id=\?\)$/),
    "SEARCH counters USING PRIMARY KEY (subject=?) LEFT-JOIN",
    ...ownersSearch,
  ]);
});

it("a look-up of an owner searches owners and counters once each", async () => {
  const { file } = await openTestEngine();
  const steps = stepsOf(file, selectOwners(sql`owners.id = ${""}`, ownerCounterIfAny()));
  expect(steps).toEqual([
    "SEARCH owners USING PRIMARY KEY (id=?)",
    "SEARCH counters USING PRIMARY KEY (subject=?) LEFT-JOIN",
  ]);
});
