import { expect, it } from "vitest";
import { createSystemRandom } from "../../src/ambient/random.ts";
import { Secret } from "../../src/domain/secret.ts";
import { StateConflict } from "../../src/usecases/conflict.ts";
import { IdempotencyConflict } from "../../src/usecases/idempotency.ts";
import { updateKey } from "../../src/usecases/update-key.ts";
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
  const update = (...[request, repeatedAs]: [object, typeof idempotencyKey?]) =>
    updateKey(management, { keyId: key.id, changes: {}, ...request }, repeatedAs, deps);
  return { clock, management, key, update };
}

it("answers the key as it is then, nothing for an unknown key, and says why it cannot be done", async () => {
  const { update, clock } = await setUp();
  expect(await update({ changes: { name: "name" } })).toMatchObject({ name: "name", version: 2 });
  expect(await update({ keyId: "key_none", changes: { name: "name" } })).toBeUndefined();
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
