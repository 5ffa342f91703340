import { describe, expect, it } from "vitest";
import { createSystemRandom } from "../../src/ambient/random.ts";
import { Secret } from "../../src/domain/secret.ts";
import { Unavailable } from "../../src/domain/unavailable.ts";
import type { Management } from "../../src/store/management.ts";
import type { Query } from "../../src/store/queries.ts";
import { StateConflict } from "../../src/usecases/conflict.ts";
import { IdempotencyConflict } from "../../src/usecases/idempotency.ts";
import { updateResource } from "../../src/usecases/manage-resource.ts";
import { sampleKey } from "../contract/sample-keys.ts";
import { createKey, deleteKey } from "../support/manage.ts";
import { createMemoryStore } from "../support/memory-store.ts";
import { TestClock } from "../support/test-clock.ts";

const idempotencyKey = { rootKey: new Secret("root key"), value: new Secret("order"), method: "UpdateKey" };

async function setUp() {
  const clock = new TestClock();
  const deps = { clock, random: createSystemRandom() };
  const { management } = createMemoryStore(clock);
  const key = sampleKey(clock);
  await createKey(management, key);
  const update = (...[request, repeatedAs, on = management]: [object, typeof idempotencyKey?, Management?]) =>
    updateResource(on, "key", { id: key.id, ifVersion: undefined, changes: {}, ...request }, repeatedAs, deps);
  return { clock, management, key, update };
}

it("answers the key as it is then, nothing for an unknown key, and says why it cannot be done", async () => {
  const { update, clock } = await setUp();
  expect(await update({ changes: { name: "name" } })).toMatchObject({ name: "name", version: 2 });
  expect(await update({ id: "key_none", changes: { name: "name" } })).toBeUndefined();
  await expect(update({ ifVersion: 1 })).rejects.toThrow(new StateConflict("version"));
  const refill = { interval: "daily", amount: 1, carryOver: false };
  await expect(update({ changes: { refill } })).rejects.toThrow("has no counter");
  expect(await update({ changes: { enabled: false } })).toMatchObject({ enabled: false, updatedAtMs: clock.nowMs() });
});

it("takes an expiry in the past for now, and leaves one in the future", async () => {
  const { update, clock } = await setUp();
  const expiryAfter = async (expiresAtMs: number | null) => (await update({ changes: { expiresAtMs } }))?.expiresAtMs;
  expect(await expiryAfter(1)).toBe(clock.nowMs());
  expect(await expiryAfter(clock.nowMs() + 1)).toBe(clock.nowMs() + 1);
  expect(await expiryAfter(null)).toBeUndefined();
});

it("is made once for an idempotency key, and a repeated request gets the key as it is by then", async () => {
  const { update, clock, management, key } = await setUp();
  // Its meaning changes with time, the request does not.
  const request = { ifVersion: 1, changes: { name: "first", expiresAtMs: 5 } };
  await update(request, idempotencyKey);
  clock.advance(1000);
  await update({ changes: { name: "second" } });
  expect(await update(request, idempotencyKey)).toMatchObject({ name: "second", version: 3 });
  await expect(update({ changes: { name: "other" } }, idempotencyKey)).rejects.toThrow(IdempotencyConflict);
  await deleteKey(management, key.id);
  expect(await update(request, idempotencyKey)).toBeUndefined();
});

describe("a rule that is changed in part", () => {
  const strict = { mode: "strict", limit: 5, durationMs: 1000 } as const;

  it("is completed by what is stored when it is changed, whoever else changes it meanwhile", async () => {
    const { update, management, key } = await setUp();
    await update({ changes: { rateLimit: strict } });
    let read = 0;
    // Somebody else is faster, three times.
    const raced = {
      ...management,
      async read<Asked extends Query>(query: Asked) {
        const stored = await management.read(query);
        if (++read <= 3) await update({ changes: { rateLimit: { ...strict, durationMs: 1000 * read } } });
        return stored;
      },
    };
    const changed = await update({ changes: { rateLimit: { limit: 9 } } }, undefined, raced);
    expect(changed?.rateLimit).toEqual({ ...strict, limit: 9, durationMs: 3000 });
    expect(read).toBe(4);
    expect((await management.read({ kind: "key", id: key.id }))?.version).toBe(6);
  });

  it("is a conflict if the caller has asked for another version, complete or not", async () => {
    const { update } = await setUp();
    const limit = { rateLimit: { limit: 9 } };
    await update({ changes: { name: "n" } });
    await expect(update({ ifVersion: 1, changes: limit })).rejects.toThrow(new StateConflict("version"));
    await expect(update({ ifVersion: 2, changes: limit })).rejects.toThrow("needs limit and duration");
    await update({ ifVersion: 2, changes: { rateLimit: strict } });
    await expect(update({ ifVersion: 2, changes: limit })).rejects.toThrow(new StateConflict("version"));
    expect((await update({ ifVersion: 3, changes: limit }))?.rateLimit).toEqual({ ...strict, limit: 9 });
  });

  it("of an unknown key is unknown", async () => {
    const { update } = await setUp();
    expect(await update({ id: "key_none", changes: { rateLimit: { limit: 9 } } })).toBeUndefined();
  });

  it("is made once for an idempotency key, also if the rule is gone by then", async () => {
    const { update } = await setUp();
    await update({ changes: { rateLimit: strict } });
    const request = { changes: { rateLimit: { limit: 9 } } };
    await update(request, idempotencyKey);
    expect(await update(request, idempotencyKey)).toMatchObject({ rateLimit: { ...strict, limit: 9 }, version: 3 });
    await update({ changes: { rateLimit: null } });
    expect(await update(request, idempotencyKey)).toMatchObject({ rateLimit: undefined, version: 4 });
    const other = { ...idempotencyKey, value: new Secret("another order") };
    await expect(update(request, other)).rejects.toThrow("needs limit and duration");
  });

  it("gives up if it is changed all the time", async () => {
    const { update, management } = await setUp();
    await update({ changes: { rateLimit: strict } });
    const raced = {
      ...management,
      async read<Asked extends Query>(query: Asked) {
        const stored = await management.read(query);
        await update({ changes: { name: "n" } });
        return stored;
      },
    };
    await expect(update({ changes: { rateLimit: { limit: 9 } } }, undefined, raced)).rejects.toThrow(Unavailable);
  });
});
