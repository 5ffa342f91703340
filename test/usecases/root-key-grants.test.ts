import { describe, expect, it } from "vitest";
import { createSystemRandom } from "../../src/ambient/random.ts";
import { Forbidden, type RootKeyFieldChanges, type RootKeyVerdict } from "../../src/domain/root-key.ts";
import { Secret } from "../../src/domain/secret.ts";
import { ExpiresInThePast } from "../../src/usecases/create-with-secret.ts";
import { IdempotencyConflict } from "../../src/usecases/idempotency.ts";
import { deleteResource, updateResource } from "../../src/usecases/manage-resource.ts";
import { createRootKey, RootKeys } from "../../src/usecases/root-keys.ts";
import { managementAs } from "../support/management-as.ts";
import { createMemoryStore } from "../support/memory-store.ts";
import { TestClock } from "../support/test-clock.ts";

const configured = new Secret("configured root key");

/** Root keys of a store in memory, of which one is configured, as their holders use them. */
function setUp() {
  const clock = new TestClock("2026-11-15T12:00:00Z");
  const deps = { clock, random: createSystemRandom() };
  const store = createMemoryStore(clock);
  const rootKeys = new RootKeys({ ...deps, configured: [configured], store: store.rootKeys });
  const access = managementAs((presented) => rootKeys.check(presented), store.management, clock);
  const create = (by: Secret, allowed: Partial<RootKeyVerdict>, idempotencyKey?: string) => {
    const request = { name: undefined, permissions: ["*"], apiIds: undefined, expiresAtMs: undefined, ...allowed };
    const key = idempotencyKey
      ? { rootKey: by, value: new Secret(idempotencyKey), method: "CreateRootKey" }
      : undefined;
    return createRootKey(access.manage(by), request, key, deps);
  };
  const secretOf = async (...given: Parameters<typeof create>) => new Secret((await create(...given)).rootKey);
  const update = (by: Secret, id: string, changes: RootKeyFieldChanges) =>
    updateResource(access.manage(by), "rootKey", { id, ifVersion: undefined, changes }, undefined, deps);
  const revoke = (by: Secret, id: string) => deleteResource(access.manage(by), "revokeRootKey", id, undefined, deps);
  return { clock, store, access, create, secretOf, update, revoke };
}

describe("a root key that was created", () => {
  it("is valid at once, allows what it was given, and is stored as a digest alone", async () => {
    const { access, create, store } = setUp();
    const { rootKeyId, rootKey } = await create(configured, { permissions: ["keys.read"], apiIds: ["a"] });
    expect(rootKey).toMatch(/^lk_root_[0-9A-Za-z]{49}$/);
    const allowed = { permissions: ["keys.read"], apiIds: ["a"], expiresAtMs: undefined };
    expect(await access.check(new Secret(rootKey))).toEqual({ rootKeyId, ...allowed });
    const read = await store.management.read({ kind: "rootKey", id: rootKeyId });
    expect(read).toMatchObject({ id: rootKeyId, ...allowed, start: rootKey.slice(0, 12) });
    expect(JSON.stringify(read)).not.toContain(rootKey);
  });

  it("is the actor of its changes", async () => {
    const { secretOf, create, store } = setUp();
    const manager = await create(configured, {});
    await secretOf(new Secret(manager.rootKey), {});
    const { items: events } = await store.management.read({ kind: "events", limit: 10 });
    expect(events.map(({ actor }) => actor).sort()).toEqual(["configured", manager.rootKeyId].sort());
  });

  it("is the same for a repeated request, until it is revoked", async () => {
    const { create, revoke } = setUp();
    const first = await create(configured, {}, "order");
    expect(await create(configured, {}, "order")).toEqual(first);
    await revoke(configured, first.rootKeyId);
    await expect(create(configured, {}, "order")).rejects.toThrow(
      new IdempotencyConflict(`this Idempotency-Key has created ${first.rootKeyId}, which was revoked since`),
    );
  });

  it("cannot have expired before it was made", async () => {
    const { create, clock } = setUp();
    await expect(create(configured, { expiresAtMs: clock.nowMs() })).rejects.toThrow(ExpiresInThePast);
  });

  it("is refused once it is revoked, by itself too", async () => {
    const { create, revoke, access } = setUp();
    const { rootKey, rootKeyId } = await create(configured, {});
    expect(await revoke(new Secret(rootKey), rootKeyId)).toBe(true);
    expect(await access.check(new Secret(rootKey))).toBeUndefined();
    expect(await revoke(configured, rootKeyId)).toBe(false);
  });
});

describe("a root key with few permissions", () => {
  const few = { permissions: ["rootKeys.update", "keys.read"] };

  it("grants those, and no others", async () => {
    const { create, secretOf } = setUp();
    const manager = await secretOf(configured, few);
    await create(manager, { permissions: ["keys.read"] });
    for (const permissions of [["*"], ["keys.*"], ["keys.read", "keys.create"], ["rootKeys.read"]]) {
      await expect(create(manager, { permissions })).rejects.toThrow(Forbidden);
    }
  });

  it("changes and revokes what has no more than it, before and after", async () => {
    const { create, secretOf, update, revoke } = setUp();
    const manager = await secretOf(configured, few);
    const mightier = await create(configured, { permissions: ["keys.delete"] });
    const lesser = await create(configured, { permissions: ["keys.read"] });
    await expect(update(manager, mightier.rootKeyId, { name: "mine now" })).rejects.toThrow(Forbidden);
    await expect(update(manager, mightier.rootKeyId, { permissions: ["keys.read"] })).rejects.toThrow(Forbidden);
    await expect(revoke(manager, mightier.rootKeyId)).rejects.toThrow(Forbidden);
    await expect(update(manager, lesser.rootKeyId, { permissions: ["keys.create"] })).rejects.toThrow(Forbidden);
    expect(await update(manager, lesser.rootKeyId, { name: "renamed" })).toMatchObject({ name: "renamed", version: 2 });
    expect(await revoke(manager, lesser.rootKeyId)).toBe(true);
    expect(await update(manager, "root_none", { name: "x" })).toBeUndefined();
  });

  it("cannot give itself more", async () => {
    const { create, update } = setUp();
    const { rootKeyId, rootKey } = await create(configured, few);
    await expect(update(new Secret(rootKey), rootKeyId, { permissions: ["*"] })).rejects.toThrow(Forbidden);
    expect(await update(new Secret(rootKey), rootKeyId, { permissions: ["rootKeys.update"] })).toBeDefined();
  });

  it("does not change what was given more since it was read", async () => {
    const { create, secretOf, update, store, clock } = setUp();
    const manager = await secretOf(configured, few);
    const { rootKeyId } = await create(configured, { permissions: ["keys.read"] });
    const { read } = store.management;
    // Given more right after it was read.
    store.management.read = async (query) => {
      const answer = await read(query);
      store.management.read = read;
      await store.management.change({
        kind: "updateRootKey",
        id: rootKeyId,
        changes: { permissions: ["*"] },
        event: { id: "evt_meanwhile", atMs: clock.nowMs(), actor: "another" },
      });
      return answer;
    };
    await expect(update(manager, rootKeyId, { name: "mine now" })).rejects.toThrow(Forbidden);
    expect(await read({ kind: "rootKey", id: rootKeyId })).toMatchObject({ name: undefined, version: 2 });
  });
});

describe("a root key that expires", () => {
  it("grants and changes nothing that outlives it", async () => {
    const { create, secretOf, update, revoke, clock } = setUp();
    const expiresAtMs = clock.nowMs() + 1000;
    const manager = await secretOf(configured, { expiresAtMs });
    for (const later of [undefined, expiresAtMs + 1]) {
      await expect(create(manager, { expiresAtMs: later })).rejects.toThrow(Forbidden);
    }
    const { rootKeyId } = await create(manager, { expiresAtMs });
    await expect(update(manager, rootKeyId, { expiresAtMs: null })).rejects.toThrow(Forbidden);
    expect(await update(manager, rootKeyId, { expiresAtMs: 1 })).toMatchObject({ expiresAtMs: clock.nowMs() });
    const eternal = await create(configured, {});
    await expect(revoke(manager, eternal.rootKeyId)).rejects.toThrow(Forbidden);
  });
});

describe("a root key that is limited to APIs", () => {
  it("manages no root keys, not even itself", async () => {
    const { create, update, revoke, access } = setUp();
    const { rootKey, rootKeyId } = await create(configured, { apiIds: ["a"] });
    const limited = new Secret(rootKey);
    const refused = [
      create(limited, { permissions: ["keys.read"], apiIds: ["a"] }),
      update(limited, rootKeyId, { name: "x" }),
      update(limited, "root_none", { name: "x" }),
      revoke(limited, rootKeyId),
      access.manage(limited).read({ kind: "rootKeys", limit: 1 }),
      access.manage(limited).read({ kind: "rootKey", id: rootKeyId }),
    ];
    for (const call of refused) await expect(call).rejects.toThrow("limited to APIs cannot manage root keys");
  });
});
