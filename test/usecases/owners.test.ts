import { describe, expect, it } from "vitest";
import { createSystemRandom } from "../../src/ambient/random.ts";
import type { NewOwner } from "../../src/domain/owner.ts";
import { Secret } from "../../src/domain/secret.ts";
import type { Management } from "../../src/store/management.ts";
import { StateConflict } from "../../src/usecases/conflict.ts";
import { deleteOwner } from "../../src/usecases/delete-owner.ts";
import { IdempotencyConflict, type IdempotencyKey } from "../../src/usecases/idempotency.ts";
import { createResource, updateRemaining, updateResource } from "../../src/usecases/manage-resource.ts";
import type { EventDeps } from "../../src/usecases/new-event.ts";
import { refillRule } from "../contract/sample-keys.ts";
import { createMemoryStore } from "../support/memory-store.ts";
import { TestClock } from "../support/test-clock.ts";

const request: NewOwner = {
  id: "owner",
  enabled: true,
  apiIds: ["api"],
  meta: { plan: "pro" },
  rateLimits: [{ name: "minute", rule: { mode: "strict", limit: 5, durationMs: 60_000 } }],
  remaining: 5,
  refill: refillRule(),
};

function setUp() {
  const clock = new TestClock("2026-11-15T12:00:00Z");
  const { management } = createMemoryStore(clock);
  return { clock, management, deps: { clock, random: createSystemRandom() } };
}

function keyOf(value: string, rootKey = "root key"): IdempotencyKey {
  return { rootKey: new Secret(rootKey), value: new Secret(value), method: "OwnersService/CreateOwner" };
}

function createOwner(management: Management, owner: NewOwner, key: IdempotencyKey | undefined, deps: EventDeps) {
  return createResource(management, "owner", owner, owner, key, deps);
}

const getOwner = (management: Management, id: string) => management.read({ kind: "owner", id });

const none = (ownerId: string) => ({ ownerId, keys: undefined });
const keep = (ownerId: string) => ({ ownerId, keys: "keep" as const });

describe("createOwner", () => {
  it("answers the owner, which is then read", async () => {
    const { management, deps, clock } = setUp();
    const created = await createOwner(management, request, undefined, deps);
    const { remaining, refill, ...fields } = request;
    const meter = { credited: remaining, hour: 0, sinceMs: clock.nowMs(), formerSpent: 0 };
    const counter = { remaining, refill: expect.objectContaining(refill as object), meter };
    const nowMs = clock.nowMs();
    expect(created).toEqual({ ...fields, counter, createdAtMs: nowMs, updatedAtMs: nowMs, version: 1 });
    expect(await getOwner(management, "owner")).toEqual(created);
    expect(await getOwner(management, "another")).toBeUndefined();
  });

  it("says that an owner exists, and leaves it as it is", async () => {
    const { management, deps } = setUp();
    const created = await createOwner(management, request, undefined, deps);
    const again = createOwner(management, { ...request, remaining: 9 }, undefined, deps);
    await expect(again).rejects.toThrow(new StateConflict("ownerExists"));
    expect(await getOwner(management, "owner")).toEqual(created);
  });

  it("repeated answers the owner as it is by then; another request under its key is a conflict", async () => {
    const { management, deps } = setUp();
    const created = await createOwner(management, request, keyOf("one"), deps);
    expect(await createOwner(management, request, keyOf("one"), deps)).toEqual(created);
    const toDisable = { id: "owner", ifVersion: undefined, changes: { enabled: false } };
    const changed = await updateResource(management, "owner", toDisable, undefined, deps);
    expect(await createOwner(management, request, keyOf("one"), deps)).toEqual(changed);
    const other = createOwner(management, { ...request, remaining: 9 }, keyOf("one"), deps);
    await expect(other).rejects.toThrow(IdempotencyConflict);
    // Of another root key: an idempotency key of its own.
    const foreign = createOwner(management, request, keyOf("one", "another root key"), deps);
    await expect(foreign).rejects.toThrow(new StateConflict("ownerExists"));
  });

  it("repeated after the owner was deleted says so, and does not make it again", async () => {
    const { management, deps } = setUp();
    await createOwner(management, request, keyOf("one"), deps);
    await deleteOwner(management, keep("owner"), undefined, deps);
    await expect(createOwner(management, request, keyOf("one"), deps)).rejects.toThrow(
      new IdempotencyConflict("this Idempotency-Key has created the owner, which was deleted since"),
    );
    expect(await getOwner(management, "owner")).toBeUndefined();
  });
});

it("updateOwner answers the owner as it is then; nothing for an unknown one; a conflict for another version", async () => {
  const { management, deps } = setUp();
  const created = await createOwner(management, request, undefined, deps);
  const update = (given: { id?: string; ifVersion?: number }, changes = {}, key?: IdempotencyKey) =>
    updateResource(management, "owner", { id: "owner", ifVersion: undefined, ...given, changes }, key, deps);
  expect(await update({ ifVersion: 1 }, { enabled: false })).toEqual({ ...created, enabled: false, version: 2 });
  await expect(update({ ifVersion: 1 })).rejects.toThrow(new StateConflict("version"));
  expect(await update({ id: "another" })).toBeUndefined();
  const all = { meta: {}, apiIds: null, rateLimits: null, refill: null };
  const removed = await update({ ifVersion: 2 }, all, keyOf("two"));
  const counter = { remaining: 5, refill: undefined, meter: expect.anything() };
  const none = { meta: {}, apiIds: undefined, rateLimits: undefined, counter };
  expect(removed).toEqual({ ...created, ...none, enabled: false, version: 3 });
  expect(await update({ ifVersion: 2 }, all, keyOf("two"))).toEqual(removed);
});

it("updateRemaining of an owner answers the balance, nothing for an unknown owner, and says why it cannot be done", async () => {
  const { management, deps } = setUp();
  await createOwner(management, request, undefined, deps);
  const update = (op: "set" | "increment" | "decrement", value: number | undefined, id = "owner") =>
    updateRemaining(management, "owner", { id, op, value }, undefined, deps);
  expect(await update("increment", 3)).toEqual({ remaining: 8 });
  await expect(update("decrement", 9)).rejects.toThrow(new StateConflict("belowZero"));
  expect(await update("set", undefined)).toEqual({ remaining: undefined });
  await expect(update("increment", 1)).rejects.toThrow("has no counter");
  expect(await update("set", 1, "another")).toBeUndefined();
  const toRefill = { id: "owner", ifVersion: undefined, changes: { refill: refillRule() } };
  await expect(updateResource(management, "owner", toRefill, undefined, deps)).rejects.toThrow(
    new StateConflict("noCounter"),
  );
});

it("updateRemaining of an owner is done once for an idempotency key, and repeated tells the balance of by then", async () => {
  const { management, deps } = setUp();
  await createOwner(management, request, undefined, deps);
  const add = (key: string) =>
    updateRemaining(management, "owner", { id: "owner", op: "increment", value: 1 }, keyOf(key), deps);
  expect([await add("one"), await add("one"), await add("two"), await add("one")]).toEqual(
    [6, 6, 7, 7].map((remaining) => ({ remaining })),
  );
});

it("deleteOwner tells whether there was one, and repeated says the same and leaves one that was made anew", async () => {
  const { management, deps } = setUp();
  await createOwner(management, request, undefined, deps);
  expect(await deleteOwner(management, none("another"), undefined, deps)).toBe(false);
  expect(await deleteOwner(management, none("owner"), keyOf("one"), deps)).toBe(true);
  expect(await deleteOwner(management, none("owner"), undefined, deps)).toBe(false);
  await createOwner(management, request, undefined, deps);
  expect(await deleteOwner(management, none("owner"), keyOf("one"), deps)).toBe(true);
  expect(await getOwner(management, "owner")).toBeDefined();
});
