import { DatabaseSync } from "node:sqlite";
import { expect, it } from "vitest";
import { checkData } from "../../../src/store/sqlite/check-data.ts";
import { sampleOwner } from "../../contract/owner-cases.ts";
import { strict } from "../../contract/permit-asks.ts";
import { sampleKey } from "../../contract/sample-keys.ts";
import { createKey, createOwner } from "../../support/manage.ts";
import { openTestEngine, tamper } from "./open-test-engine.ts";

/** What the file would be like if one table were from another point in time than the others. */
const losses: readonly (readonly [string, string])[] = [
  ["PRAGMA foreign_keys = OFF; DELETE FROM keys", "counters"],
  ["PRAGMA foreign_keys = OFF; DELETE FROM keys; DELETE FROM counters", "permit_windows"],
  ["DELETE FROM owners", "counters"],
  ["DELETE FROM owners; DELETE FROM counters WHERE subject LIKE 'c/%'", "permit_windows"],
  ["DELETE FROM owners WHERE id = 'a/one'", "counters"],
];

it.each(losses)("a file after %s has rows of %s that belong to nothing", async (loss, table) => {
  const { file, keys, clock } = await openTestEngine();
  const counted = { remaining: 5, rateLimits: [{ name: "a", rule: strict(5) }] };
  await createKey(keys, sampleKey(clock, { ownerId: "one", ...counted }));
  for (const id of ["one", "a/one", "one/a"]) await createOwner(keys, sampleOwner(id, counted));
  const check = () => {
    const db = new DatabaseSync(file, { readOnly: true });
    try {
      return checkData(db);
    } finally {
      db.close();
    }
  };
  expect(check()).toEqual({ outcome: "sound", isOnDisk: false });
  tamper(file, loss);
  expect(check()).toEqual({ outcome: "damaged", reason: `a row of ${table} belongs to nothing` });
});
