import { describe, expect, it } from "vitest";
import { createSystemRandom } from "../../src/ambient/random.ts";
import type { NewApi } from "../../src/domain/api.ts";
import { Secret } from "../../src/domain/secret.ts";
import { Unavailable } from "../../src/domain/unavailable.ts";
import type { Command } from "../../src/store/commands.ts";
import type { Management } from "../../src/store/management.ts";
import { StateConflict } from "../../src/usecases/conflict.ts";
import { deleteApi } from "../../src/usecases/delete-api.ts";
import { IdempotencyConflict, type IdempotencyKey } from "../../src/usecases/idempotency.ts";
import { createResource, updateResource } from "../../src/usecases/manage-resource.ts";
import type { EventDeps } from "../../src/usecases/new-event.ts";
import { sampleKey } from "../contract/sample-keys.ts";
import { deleteApiKeys, stopApi, createApi as storeApi, createKey as storeKey } from "../support/manage.ts";
import { createMemoryStore } from "../support/memory-store.ts";
import { TestClock } from "../support/test-clock.ts";

const request: NewApi = { id: "api", name: "name", ownersRequired: false, defaults: { remaining: 5 } };

function setUp() {
  const clock = new TestClock("2026-11-15T12:00:00Z");
  const { management } = createMemoryStore(clock);
  return { clock, management, deps: { clock, random: createSystemRandom() } };
}

function keyOf(value: string, rootKey = "root key"): IdempotencyKey {
  return { rootKey: new Secret(rootKey), value: new Secret(value), method: "CreateApi", apiId: "api" };
}

function createApi(management: Management, api: NewApi, key: IdempotencyKey | undefined, deps: EventDeps) {
  return createResource(management, "api", api, api, key, deps);
}

const getApi = (management: Management, id: string) => management.read({ kind: "api", id });

describe("createApi", () => {
  it("answers the API, which is then read", async () => {
    const { management, deps, clock } = setUp();
    const nowMs = clock.nowMs();
    const created = await createApi(management, request, undefined, deps);
    expect(created).toEqual({ ...request, createdAtMs: nowMs, updatedAtMs: nowMs, version: 1 });
    expect(await getApi(management, "api")).toEqual(created);
    expect(await getApi(management, "another")).toBeUndefined();
  });

  it("says that an API exists", async () => {
    const { management, deps } = setUp();
    await createApi(management, request, undefined, deps);
    await expect(createApi(management, request, undefined, deps)).rejects.toThrow(new StateConflict("apiExists"));
  });

  it.each([["api"], [undefined]])("of %s, repeated, answers what it has made", async (apiId) => {
    const { management, deps } = setUp();
    const asked = { ...request, id: apiId };
    let generated = 0;
    // Where the request has no id, it gets another one each time.
    const create = () => {
      const api = { ...request, id: apiId ?? `api_${++generated}` };
      return createResource(management, "api", api, asked, keyOf("one"), deps);
    };
    const made = await create();
    expect(await create()).toEqual(made);
    const toRename = { id: made.id, ifVersion: undefined, changes: { name: "x" } };
    const renamed = await updateResource(management, "api", toRename, undefined, deps);
    expect(await create()).toEqual(renamed);
    expect((await management.read({ kind: "apis", limit: 10 })).items).toEqual([renamed]);
  });

  it("under the idempotency key of another request or of another root key is a conflict", async () => {
    const { management, deps } = setUp();
    await createApi(management, request, keyOf("one"), deps);
    const other = createApi(management, { ...request, name: "x" }, keyOf("one"), deps);
    await expect(other).rejects.toThrow(IdempotencyConflict);
    const foreign = createApi(management, request, keyOf("one", "another root key"), deps);
    await expect(foreign).rejects.toThrow("was used with another root key, for api");
  });

  it("repeated after the API was deleted says so", async () => {
    const { management, deps } = setUp();
    await createApi(management, request, keyOf("one"), deps);
    const read = async () => undefined as never;
    const repeated = createApi({ ...management, read }, request, keyOf("one"), deps);
    await expect(repeated).rejects.toThrow("has created api, which was deleted since");
  });
});

describe("updateApi", () => {
  it("answers the API as it is then; nothing for an unknown one; a conflict for another version", async () => {
    const { management, deps } = setUp();
    await createApi(management, request, undefined, deps);
    const update = (given: { id?: string; ifVersion?: number; name?: string | null }, key?: IdempotencyKey) => {
      const { id = "api", ifVersion, name = "second" } = given;
      return updateResource(management, "api", { id, ifVersion, changes: { name } }, key, deps);
    };
    expect(await update({ ifVersion: 1 })).toMatchObject({ name: "second", version: 2, defaults: { remaining: 5 } });
    await expect(update({ ifVersion: 1 })).rejects.toThrow(new StateConflict("version"));
    expect(await update({ id: "another" })).toBeUndefined();
    const removed = await update({ ifVersion: 2, name: null }, keyOf("two"));
    expect(removed).toMatchObject({ name: undefined, version: 3 });
    expect(await update({ ifVersion: 2, name: null }, keyOf("two"))).toEqual(removed);
  });
});

describe("deleteApi", () => {
  function deletion() {
    const { management, deps, clock } = setUp();
    const commands: Command[] = [];
    const noted: Pick<Management, "change"> = {
      change(command, record) {
        commands.push(command);
        return management.change(command, record);
      },
    };
    const remove = (force: boolean, key?: IdempotencyKey) => deleteApi(noted, { apiId: "api", force }, key, deps);
    const fill = async (count: number) => {
      for (let i = 0; i < count; i++) await storeKey(management, sampleKey(clock, { apiId: "api" }));
    };
    const kinds = () => commands.map(({ kind }) => kind);
    return { management, clock, remove, fill, kinds, commands };
  }

  it("deletes an API without keys, and says of an unknown one that there is none, with force or without", async () => {
    for (const force of [false, true]) {
      const { management, remove } = deletion();
      expect(await remove(force)).toBe(false);
      await storeApi(management, "api");
      expect(await remove(force)).toBe(true);
      expect(await getApi(management, "api")).toBeUndefined();
    }
  });

  it("refuses to delete an API with keys, unless it is forced: then they go in pieces of 500, and it goes last", async () => {
    const { management, remove, fill, kinds, commands } = deletion();
    await fill(1001);
    await expect(remove(false)).rejects.toThrow(new StateConflict("hasKeys"));
    commands.splice(0);
    expect(await remove(true)).toBe(true);
    const piece = "deleteApiKeys";
    expect(kinds()).toEqual(["stopApi", piece, piece, piece, "deleteApi"]);
    expect(commands).toContainEqual(expect.objectContaining({ kind: piece, limit: 500 }));
    expect(new Set(commands.map(({ event }) => event.id)).size).toBe(commands.length);
    expect(await getApi(management, "api")).toBeUndefined();
  });

  it("goes on where another one has stopped", async () => {
    const { management, remove, fill } = deletion();
    await fill(3);
    await stopApi(management, "api");
    await deleteApiKeys(management, "api", 1);
    expect(await remove(true)).toBe(true);
    expect(await getApi(management, "api")).toBeUndefined();
  });

  it("deletes a key too that was still being stored", async () => {
    const { management, clock, deps } = { ...deletion(), ...setUp() };
    await storeApi(management, "api");
    const kinds: string[] = [];
    const late: Pick<Management, "change"> = {
      async change(command, record) {
        kinds.push(command.kind);
        // Stored before the API has stopped to take keys, and seen after the first look.
        if (command.kind === "stopApi") await storeKey(management, sampleKey(clock, { apiId: "api" }));
        const isFirstLook = command.kind === "deleteApiKeys" && kinds.length === 2;
        if (isFirstLook) return { outcome: "done", changed: [], answer: { cursor: undefined } } as never;
        return management.change(command, record);
      },
    };
    expect(await deleteApi(late, { apiId: "api", force: true }, undefined, deps)).toBe(true);
    expect(kinds).toEqual(["stopApi", "deleteApiKeys", "deleteApi", "deleteApiKeys", "deleteApi"]);
  });

  it.each([false, true])("repeated (force: %s) says the same, and leaves an API that was made anew", async (force) => {
    const { management, clock, remove } = deletion();
    await storeApi(management, "api");
    const key = keyOf("one");
    expect(await remove(force, key)).toBe(true);
    expect(await remove(force, key)).toBe(true);
    await storeKey(management, sampleKey(clock, { apiId: "api" }));
    expect(await remove(force, key)).toBe(true);
    expect(await getApi(management, "api")).toBeDefined();
    await expect(remove(!force, key)).rejects.toThrow(IdempotencyConflict);
  });

  it("repeated after a crash in the middle finishes", async () => {
    const { management, fill, remove, clock } = deletion();
    await fill(2);
    const key = keyOf("one");
    const away = new Unavailable("away");
    const dying: Pick<Management, "change"> = {
      change: (command, record) =>
        command.kind === "deleteApiKeys" ? Promise.reject(away) : management.change(command, record),
    };
    const deps = { clock, random: createSystemRandom() };
    await expect(deleteApi(dying, { apiId: "api", force: true }, key, deps)).rejects.toBe(away);
    expect(await remove(true, key)).toBe(true);
    expect(await getApi(management, "api")).toBeUndefined();
  });
});
