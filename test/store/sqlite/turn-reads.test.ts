import type { DatabaseSync } from "node:sqlite";
import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, it } from "vitest";
import { sql } from "../../../src/store/sql/sql.ts";
import { TurnReads } from "../../../src/store/sqlite/turn-reads.ts";
import { foundAs, sampleKey } from "../../contract/sample-keys.ts";
import { createKey, deleteKey } from "../../support/manage.ts";
import { openTestEngine } from "./open-test-engine.ts";

/** Stays in the same turn until the writer thread has committed. Its answer comes when the turn goes on. */
async function committed(): Promise<void> {
  // By then the writer thread has its batch.
  for (let i = 0; i < 5; i++) await Promise.resolve();
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 200);
}

it("look-ups that share a read transaction see every change that was acknowledged before them", async () => {
  const { clock, keys } = await openTestEngine();
  const [first, second] = [sampleKey(clock), sampleKey(clock)];
  await createKey(keys, first);
  const lookUp = () => [first, second].map(({ secretDigest }) => keys.findByDigest(secretDigest));

  // The answer to a change comes in the same turn as these look-ups, after them, and before the end of the turn.
  await nextTurn();
  expect(lookUp()).toEqual([foundAs(first), undefined]);
  const created = createKey(keys, second).then(lookUp);
  await committed();
  expect(lookUp(), "as it was when the transaction began").toEqual([foundAs(first), undefined]);
  expect(await created).toEqual([foundAs(first), foundAs(second)]);

  await nextTurn();
  expect(lookUp()).toEqual([foundAs(first), foundAs(second)]);
  const deleted = deleteKey(keys, first.id).then(lookUp);
  await committed();
  expect(await deleted).toEqual([undefined, foundAs(second)]);
});

it("other questions see the file as it is when they are asked", async () => {
  const { clock, engine, keys } = await openTestEngine();
  const key = sampleKey(clock);
  await nextTurn();
  for (let i = 0; i < 3; i++) expect(keys.findByDigest(key.secretDigest)).toBeUndefined();
  const created = createKey(keys, key);
  await committed();
  expect(await engine.read(sql`SELECT id FROM keys`)).toEqual([{ id: key.id }]);
  await created;
});

it("a transaction that cannot be ended ends no process, and nothing is read in it again", async () => {
  const damage = new Error("database disk image is malformed");
  const reader = {
    isOpen: true,
    isTransaction: false,
    isDamaged: false,
    prepare: (sql: string) => ({ run: () => run(sql) }),
  };
  const run = (sql: string) => {
    if (sql === "COMMIT" && reader.isDamaged) throw damage;
    reader.isTransaction = sql === "BEGIN";
  };
  const failures: unknown[] = [];
  const reads = new TurnReads(reader as unknown as DatabaseSync, (cause) => failures.push(cause));
  for (let i = 0; i < 2; i++) reads.beforeLookup();
  reader.isDamaged = true;
  await nextTurn();
  expect([failures, reader.isTransaction]).toEqual([[damage], true]);
  expect(() => reads.beforeLookup()).toThrow(damage);
  expect(() => reads.endNow()).toThrow(damage);
  reader.isDamaged = false;
  reads.beforeLookup();
  expect(reader.isTransaction).toBe(false);
});
