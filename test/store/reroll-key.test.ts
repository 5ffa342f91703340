import pg from "pg";
import { describe, expect, it } from "vitest";
import { sha256 } from "../../src/ambient/crypto.ts";
import { createMetrics } from "../../src/ambient/metrics.ts";
import { formatKey } from "../../src/domain/key-format.ts";
import { Secret } from "../../src/domain/secret.ts";
import { Unavailable } from "../../src/domain/unavailable.ts";
import { WaitingRoom } from "../../src/domain/waiting-room.ts";
import { CachedKeyLookup } from "../../src/store/cached-key-lookup.ts";
import { createVerifyKey } from "../../src/usecases/verify-key.ts";
import { sampleKey } from "../contract/sample-keys.ts";
import { created } from "../contract/usage-cases.ts";
import { createKey, rerollKey, testEvent, updateRemaining } from "../support/manage.ts";
import { createMemoryStore } from "../support/memory-store.ts";
import { openTestStore } from "../support/open-test-store.ts";
import { query } from "../support/run-statement.ts";
import { TestClock } from "../support/test-clock.ts";
import { createTestDatabase, hasPostgres } from "../support/test-database.ts";
import { atTestEnd } from "../support/test-end.ts";
import { fakeParts } from "../usecases/fakes.ts";

const clock = new TestClock();

it("a cached key is refused from the millisecond at which its secret ends, without a look at the store", async () => {
  const clock = new TestClock();
  const store = createMemoryStore(clock);
  const { key: secret } = formatKey(undefined, new Uint8Array(24));
  const key = sampleKey(clock, { secretDigest: sha256(secret) });
  await createKey(store.management, key);
  const event = testEvent(clock.nowMs());
  await rerollKey(store.management, key.id, { secretDigest: "new", overlapMs: 1000, event });
  let lookups = 0;
  const counting = {
    findByDigest(digest: string) {
      lookups++;
      return store.keys.findByDigest(digest);
    },
  };
  const options = { ttlMs: 60_000, keysMax: 10, waitingRoom: new WaitingRoom(10) };
  const keys = new CachedKeyLookup(counting, options, { clock, metrics: createMetrics() });
  keys.newsIsCurrent(clock.monotonicMs());
  const verifyKey = createVerifyKey({ ...fakeParts({ found: [] }, (answer) => answer()), keys, clock });
  const verify = () => verifyKey({ key: new Secret(secret), apiId: undefined });
  expect(await verify()).toMatchObject({ code: "VALID" });
  clock.advance(999);
  expect(await verify()).toMatchObject({ code: "VALID" });
  clock.advance(1);
  expect(await verify()).toEqual({ code: "NOT_FOUND" });
  expect(lookups).toBe(1);
});

describe.runIf(hasPostgres)("on Postgres", () => {
  it("a change that waited for a reroll tells of the secret that was replaced meanwhile", async () => {
    const url = await createTestDatabase();
    const store = await openTestStore({ url });
    const key = await created(store, clock, { remaining: 5 });
    const { position } = await store.changes.read(undefined);
    const rerolling = new pg.Client(url);
    await rerolling.connect();
    atTestEnd(() => rerolling.end());
    await rerolling.query("BEGIN");
    await rerolling.query(`INSERT INTO ending_secrets SELECT digest, id, start, 1, 2 FROM keys WHERE id = '${key.id}'`);
    await rerolling.query(`UPDATE keys SET digest = 'new' WHERE id = '${key.id}'`);
    const waiting = updateUntilDone(store, key.id);
    await untilWaiting(url);
    await rerolling.query("COMMIT");
    const told = { keyId: key.id, digests: ["new", key.secretDigest] };
    expect(await waiting).toMatchObject({ outcome: "done", changed: [told] });
    expect((await store.changes.read(position)).changed).toEqual([{ kind: "key", ...told }]);
  });
});

/** A change waits for a lock for less than a second, which a busy machine may need. */
async function updateUntilDone(store: Awaited<ReturnType<typeof openTestStore>>, keyId: string) {
  for (;;) {
    try {
      return await updateRemaining(store.management, keyId, "decrement", 1);
    } catch (error) {
      if (!(error instanceof Unavailable)) throw error;
    }
  }
}

async function untilWaiting(url: string): Promise<void> {
  const text = `SELECT count(*) AS waiting FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event_type = 'Lock'`;
  while (Number((await query(url, text)).rows[0].waiting) === 0);
}
