import { describe, expect, it } from "vitest";
import { Forbidden } from "../../src/domain/root-key.ts";
import type { Command } from "../../src/store/commands.ts";
import type { Management } from "../../src/store/management.ts";
import { sampleOwner } from "../contract/owner-cases.ts";
import { createOwner, testEvent, updateOwner } from "../support/manage.ts";
import { commandsOn, setUp } from "./access-fixture.ts";

describe("an owner, under a root key that is limited to APIs", () => {
  const ownerId = "owner of mine";
  const apiIds = ["another", "mine"];
  const updateTo = (changed: readonly string[] | null, id = ownerId): Extract<Command, { kind: "updateOwner" }> => ({
    kind: "updateOwner",
    id,
    changes: { apiIds: changed },
    event: testEvent(),
  });

  it("cannot concern other APIs, or all, and is not created or changed then, whether it is there or not", async () => {
    const { management, made, asked } = await setUp({ apiIds });
    for (const beyond of [["mine", "theirs"], ["theirs"], null]) {
      const created = sampleOwner("new owner", { apiIds: beyond ?? undefined });
      await expect(management.change({ kind: "createOwner", created, event: testEvent() })).rejects.toThrow(Forbidden);
      for (const id of [ownerId, "owner of theirs", "owner of nobody"]) {
        await expect(management.change(updateTo(beyond, id))).rejects.toThrow("apiIds must name them");
      }
    }
    expect([made, asked]).toEqual([[], []]);
    expect(await management.change(updateTo(apiIds))).toMatchObject({ outcome: "done", answer: { apiIds } });
  });

  it("is not there if it concerns other APIs too, or all", async () => {
    const { management, store } = await setUp({ apiIds });
    for (const beyond of [["mine", "theirs"], null]) {
      await updateOwner(store.management, ownerId, { apiIds: beyond });
      expect(await management.read({ kind: "owner", id: ownerId })).toBeUndefined();
      expect(await management.read({ kind: "owners", limit: 10 })).toEqual({ items: [] });
      for (const kind of ["updateOwner", "updateOwnerRemaining", "deleteOwner"] as const) {
        expect(await management.change(commandsOn("mine")[kind])).toEqual({ outcome: "missing" });
      }
    }
  });

  /** Makes something happen once, right after the owner was read for a check. */
  function afterCheck(store: { management: Management }, meanwhile: () => Promise<unknown>): void {
    const { read } = store.management;
    store.management.read = async (query) => {
      const answer = await read(query);
      store.management.read = read;
      await meanwhile();
      return answer;
    };
  }

  it.each(["updateOwner", "updateOwnerRemaining", "deleteOwner"] as const)(
    "is not changed by %s if it was extended to other APIs since the check, or made since",
    async (kind) => {
      for (const ifVersion of kind === "updateOwner" ? [undefined, 1, 2] : [undefined]) {
        const { management, store } = await setUp({ apiIds });
        const command = { ...commandsOn("mine")[kind], ...(ifVersion && { ifVersion }) };
        afterCheck(store, () => updateOwner(store.management, ownerId, { apiIds: ["theirs"] }));
        const outcome = await management.change(command);
        // Whoever has named a version learns that it is another one by now.
        expect(outcome).toEqual(ifVersion ? { outcome: "conflict", reason: "version" } : { outcome: "missing" });
        const owner = await store.management.read({ kind: "owner", id: ownerId });
        expect(owner).toMatchObject({ enabled: true, version: 2, counter: { remaining: 5 } });
        const foreign = sampleOwner("made since", { apiIds: ["theirs"], remaining: 5 });
        const made = { ...command, id: "made since" };
        afterCheck(store, () => createOwner(store.management, foreign));
        expect((await management.change(made)).outcome).not.toBe("done");
        expect(await store.management.read({ kind: "owner", id: "made since" })).toMatchObject({ version: 1 });
      }
    },
  );

  it("is changed all the same if it was changed otherwise since the check, unless the caller names a version", async () => {
    const { management, store } = await setUp({ apiIds });
    afterCheck(store, () => updateOwner(store.management, ownerId, { enabled: false }));
    const added = await management.change(commandsOn("mine").updateOwnerRemaining);
    expect(added).toMatchObject({ outcome: "done", answer: { remaining: 6, version: 3 } });
    afterCheck(store, () => updateOwner(store.management, ownerId, { enabled: true }));
    const late = await management.change({ ...commandsOn("mine").updateOwner, ifVersion: 3 });
    expect(late).toEqual({ outcome: "conflict", reason: "version" });
  });

  it("is given up if others are faster again and again", async () => {
    const { management, store } = await setUp({ apiIds });
    const { read } = store.management;
    let checks = 0;
    store.management.read = async (query) => {
      const answer = await read(query);
      checks++;
      await updateOwner(store.management, ownerId, { enabled: false });
      return answer;
    };
    const outcome = await management.change(commandsOn("mine").deleteOwner);
    expect(outcome).toEqual({ outcome: "conflict", reason: "version" });
    expect(checks).toBe(11);
  });
});
