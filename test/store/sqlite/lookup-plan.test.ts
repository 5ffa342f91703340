import { expect, it } from "vitest";
import {
  counterKeyIfAny,
  ownerCounterIfAny,
  selectKeys,
  selectKeysOfEndingSecrets,
  selectOwners,
} from "../../../src/store/sql/find-rows.ts";
import { openTestEngine, readRows } from "./open-test-engine.ts";

/** Only of a key that names an owner. */
const ownersSearch = ["CORRELATED SCALAR SUBQUERY 1", "SEARCH owners USING PRIMARY KEY (id=?)"];

it("a look-up searches keys, counters and owners once each, by primary keys that hold the rows", async () => {
  const { engine, file } = await openTestEngine();
  const { sql } = selectKeys(engine.db, counterKeyIfAny).where("keys.digest", "=", "").compile();
  const steps = readRows(file, `EXPLAIN QUERY PLAN ${sql}`).map(({ detail }) => detail);
  expect(steps).toEqual([
    "SEARCH keys USING PRIMARY KEY (digest=?)",
    "SEARCH counters USING PRIMARY KEY (subject=?) LEFT-JOIN",
    ...ownersSearch,
  ]);
});

it("a look-up by a secret that was replaced searches it, its key, the counter and the owner once each", async () => {
  const { engine, file } = await openTestEngine();
  const query = selectKeysOfEndingSecrets(engine.db, counterKeyIfAny).where("ending_secrets.digest", "=", "");
  const steps = readRows(file, `EXPLAIN QUERY PLAN ${query.compile().sql}`).map(({ detail }) => detail);
  expect(steps).toEqual([
    "SEARCH ending_secrets USING PRIMARY KEY (digest=?)",
    expect.stringMatching(/^SEARCH keys USING INDEX \S+ \(id=\?\)$/),
    "SEARCH counters USING PRIMARY KEY (subject=?) LEFT-JOIN",
    ...ownersSearch,
  ]);
});

it("a look-up of an owner searches owners and counters once each", async () => {
  const { engine, file } = await openTestEngine();
  const query = selectOwners(engine.db, ownerCounterIfAny()).where("owners.id", "=", "");
  const steps = readRows(file, `EXPLAIN QUERY PLAN ${query.compile().sql}`).map(({ detail }) => detail);
  expect(steps).toEqual([
    "SEARCH owners USING PRIMARY KEY (id=?)",
    "SEARCH counters USING PRIMARY KEY (subject=?) LEFT-JOIN",
  ]);
});
