import { expect, it } from "vitest";
import {
  deleteKey,
  deleteOwner,
  setRateLimit,
  testEvent,
  updateOwner,
  updateOwnerRemaining,
  updateRemaining,
} from "../../support/manage.ts";
import { openTestEngine, readRows, tamper } from "./open-test-engine.ts";

it("an id of no key or owner deletes and changes no counter and no window, whatever subject it is or begins", async () => {
  const { file, keys } = await openTestEngine();
  const subjects = ["c/owner", "o/name/owner", "f/l1000/1/a/-/b", "key_1/name"];
  for (const subject of subjects) {
    tamper(file, `INSERT INTO counters (subject, remaining) VALUES ('${subject}', 5)`);
    tamper(file, `INSERT INTO permit_windows VALUES ('${subject}', 1, 9, 9, 0, 3, 1, 0, 10, 1000, 'owner')`);
  }
  const rows = () => ["counters", "permit_windows"].map((table) => readRows(file, `SELECT * FROM ${table}`));
  const before = rows();
  expect(before.map((table) => table.length)).toEqual([4, 4]);
  for (const keyId of [...subjects, "c", "o", "f", "o/name", "key_1", "key_1/"]) {
    expect(await deleteKey(keys, keyId)).toBeUndefined();
    expect(await setRateLimit(keys, keyId, undefined)).toBeUndefined();
    for (const value of [1, undefined])
      expect(await updateRemaining(keys, keyId, "set", value)).toEqual({ outcome: "missing" });
    const changes = { rateLimits: null };
    const update = { kind: "updateKey", id: keyId, ifVersion: undefined, changes, event: testEvent() } as const;
    expect(await keys.change(update)).toEqual({ outcome: "missing" });
  }
  for (const ownerId of ["owner", "name/owner", ...subjects]) {
    expect(await deleteOwner(keys, ownerId)).toEqual({ outcome: "missing" });
    expect(await updateOwner(keys, ownerId, { rateLimits: null, refill: null })).toEqual({ outcome: "missing" });
    for (const value of [1, undefined])
      expect(await updateOwnerRemaining(keys, ownerId, "set", value)).toEqual({ outcome: "missing" });
  }
  expect(rows()).toEqual(before);
});
