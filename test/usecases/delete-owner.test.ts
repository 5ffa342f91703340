import { describe, expect, it } from "vitest";
import { createSystemRandom } from "../../src/ambient/random.ts";
import { Secret } from "../../src/domain/secret.ts";
import { Unavailable } from "../../src/domain/unavailable.ts";
import type { Command, IdempotencyRecord } from "../../src/store/commands.ts";
import type { Management } from "../../src/store/management.ts";
import { type DeleteOwnerRequest, deleteOwner } from "../../src/usecases/delete-owner.ts";
import { sampleOwner } from "../contract/owner-cases.ts";
import { sampleKey } from "../contract/sample-keys.ts";
import { createKey, createOwner, deleteOwner as deleteStoredOwner, updateOwner } from "../support/manage.ts";
import { createMemoryStore } from "../support/memory-store.ts";
import { TestClock } from "../support/test-clock.ts";

const idempotencyKey = {
  rootKey: new Secret("root key"),
  value: new Secret("once"),
  method: "OwnersService/DeleteOwner",
};

/** An owner of keys in the APIs a and b, of which only those of a are its own, and somebody else's key. */
async function setUp(keysOfA = 3) {
  const clock = new TestClock();
  const { management } = createMemoryStore(clock);
  const deps = { clock, random: createSystemRandom() };
  await createOwner(management, sampleOwner("owner", { apiIds: ["a"] }));
  for (let i = 0; i < keysOfA; i++) await createKey(management, sampleKey(clock, { apiId: "a", ownerId: "owner" }));
  await createKey(management, sampleKey(clock, { apiId: "b", ownerId: "owner" }));
  await createKey(management, sampleKey(clock, { apiId: "a", ownerId: "another" }));
  const remove = (keys: DeleteOwnerRequest["keys"], isRepeated = false, on: Management = management) =>
    deleteOwner(on, { ownerId: "owner", keys }, isRepeated ? idempotencyKey : undefined, deps);
  const keysIn = async (apiId: string, ownerId = "owner") =>
    (await management.read({ kind: "keys", apiId, ownerId, limit: 100 })).items;
  const owner = () => management.read({ kind: "owner", id: "owner" });
  return { clock, management, remove, keysIn, owner };
}

/** Calls `before` first with each command. */
function watched(management: Management, before: (command: Command) => unknown): Management {
  return {
    ...management,
    async change<Made extends Command>(command: Made, record?: IdempotencyRecord) {
      await before(command);
      return management.change(command, record);
    },
  };
}

describe("deleting an owner that keys name", () => {
  it("is a conflict that says how many, and changes nothing", async () => {
    const { remove, owner, keysIn } = await setUp();
    const before = await owner();
    await expect(remove(undefined)).rejects.toThrow(
      '3 keys name the owner; say what becomes of them with keys: "keep"',
    );
    expect(await owner()).toEqual(before);
    expect(await keysIn("a")).toHaveLength(3);
  });

  it("is done if they are of APIs that it does not concern", async () => {
    const { remove, owner, keysIn } = await setUp(0);
    expect(await remove(undefined)).toBe(true);
    expect(await owner()).toBeUndefined();
    expect(await keysIn("b")).toHaveLength(1);
  });

  it("leaves them as they are, if they are to be kept", async () => {
    const { remove, owner, keysIn } = await setUp();
    const before = await keysIn("a");
    expect(await remove("keep")).toBe(true);
    expect([await owner(), await keysIn("a")]).toEqual([undefined, before]);
    expect(await remove("keep")).toBe(false);
  });

  it.each([3, 600])("disables %i of them, and no others", async (count) => {
    const { remove, owner, keysIn, management } = await setUp(count);
    expect(await remove("disable")).toBe(true);
    expect(await owner()).toBeUndefined();
    const enabled = await management.read({ kind: "keys", apiId: "a", ownerId: "owner", enabled: true, limit: 100 });
    expect(enabled.items).toEqual([]);
    expect((await keysIn("a")).length).toBe(Math.min(100, count));
    expect([...(await keysIn("b")), ...(await keysIn("a", "another"))].map((key) => key.enabled)).toEqual([true, true]);
  });

  it.each([3, 600])("deletes %i of them, and no others", async (count) => {
    const { remove, owner, keysIn } = await setUp(count);
    expect(await remove("delete")).toBe(true);
    expect([await owner(), await keysIn("a")]).toEqual([undefined, []]);
    expect([...(await keysIn("b")), ...(await keysIn("a", "another"))]).toHaveLength(2);
  });

  it.each(["disable", "delete"] as const)(
    "with %s disables the owner first, then its keys end in pieces of 500, and its record goes last",
    async (how) => {
      const { remove, management } = await setUp(1001);
      const commands: Command[] = [];
      await remove(
        how,
        false,
        watched(management, (command) => commands.push(command)),
      );
      const piece = expect.objectContaining({ kind: "endOwnerKeys", apiId: "a", how, limit: 500 });
      const [first, last] = ["stopOwner", "deleteOwner"].map((kind) => expect.objectContaining({ kind }));
      expect(commands).toEqual([first, piece, piece, piece, last]);
      expect(new Set(commands.map(({ event }) => event.id)).size).toBe(commands.length);
    },
  );

  it("goes on when it is repeated, with and without an idempotency key", async () => {
    for (const isRepeated of [true, false]) {
      const { remove, owner, keysIn, management } = await setUp(502);
      let left = 1;
      const failing = watched(management, ({ kind }) => {
        if (kind === "endOwnerKeys" && left-- <= 0) throw new Unavailable("away");
      });
      await expect(remove("delete", isRepeated, failing)).rejects.toThrow(Unavailable);
      expect([(await owner())?.enabled, (await keysIn("a")).length]).toEqual([false, 2]);
      expect(await remove("delete", isRepeated)).toBe(true);
      expect([await owner(), await keysIn("a")]).toEqual([undefined, []]);
    }
  });

  it("when repeated leaves an owner that was made anew meanwhile, and its keys", async () => {
    const { remove, owner, keysIn, management, clock } = await setUp();
    await remove("delete", true);
    await createOwner(management, sampleOwner("owner", { apiIds: ["a"] }), { atMs: clock.nowMs() + 1 });
    await createKey(management, sampleKey(clock, { apiId: "a", ownerId: "owner" }));
    expect(await remove("delete", true)).toBe(true);
    expect([(await owner())?.enabled, (await keysIn("a")).length]).toEqual([true, 1]);
  });

  it("in the middle leaves an owner that another one has made in its place, and its keys", async () => {
    const { remove, owner, keysIn, management, clock } = await setUp(502);
    let pieces = 0;
    const raced = watched(management, async ({ kind }) => {
      if (kind !== "endOwnerKeys" || ++pieces !== 2) return;
      await deleteStoredOwner(management, "owner");
      await createOwner(management, sampleOwner("owner", { apiIds: ["a"] }), { atMs: clock.nowMs() + 1 });
    });
    expect(await remove("delete", false, raced)).toBe(true);
    expect([(await owner())?.enabled, (await keysIn("a")).length]).toEqual([true, 2]);
  });

  it("ends keys that are made meanwhile, and leaves one that is given to somebody else", async () => {
    const { remove, owner, keysIn, management, clock } = await setUp();
    const [moved] = await keysIn("a");
    const kinds: string[] = [];
    const raced = watched(management, async ({ kind }) => {
      kinds.push(kind);
      // After the last key has ended.
      if (kinds.length === 3) await createKey(management, sampleKey(clock, { apiId: "a", ownerId: "owner" }));
      if (kinds.length !== 2) return;
      const event = { id: "evt_moved", atMs: 1, actor: "root_test" };
      await management.change({ kind: "updateKey", id: moved?.id ?? "", changes: { ownerId: "another" }, event });
    });
    expect(await remove("delete", false, raced)).toBe(true);
    expect([await owner(), await keysIn("a")]).toEqual([undefined, []]);
    expect((await keysIn("a", "another")).map(({ id }) => id)).toContain(moved?.id);
    expect(kinds).toEqual(["stopOwner", "endOwnerKeys", "deleteOwner", "endOwnerKeys", "deleteOwner"]);
  });

  it("is not hindered by changes of the owner meanwhile", async () => {
    const { remove, owner, management } = await setUp(0);
    let changes = 3;
    const raced = watched(management, async ({ kind }) => {
      if (kind === "deleteOwner" && changes-- > 0) await updateOwner(management, "owner", { meta: { changes } });
    });
    expect(await remove("delete", false, raced)).toBe(true);
    expect(await owner()).toBeUndefined();
  });

  it("finds none", async () => {
    const { remove } = await setUp(0);
    await remove(undefined);
    for (const keys of [undefined, "keep", "disable", "delete"] as const) expect(await remove(keys)).toBe(false);
  });
});
