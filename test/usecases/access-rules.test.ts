import { describe, expect, it } from "vitest";
import { Forbidden } from "../../src/domain/root-key.ts";
import { type CommandKind, commandsOn, type KeyQuery, queriesOn, setUp } from "./access-fixture.ts";

const commandKinds = Object.keys(commandsOn("mine")) as CommandKind[];
const queryKinds = Object.keys(queriesOn("mine")) as KeyQuery[];
describe.each(commandKinds)("the command %s", (kind) => {
  it("is carried out under a root key, which becomes the actor of its event", async () => {
    const { management, made } = await setUp();
    expect(await management.change(commandsOn("mine")[kind])).toMatchObject({ outcome: "done" });
    expect(made.map(({ event }) => event.actor)).toEqual(["root_1"]);
  });

  it("finds what belongs to an API of the root key, and nothing else", async () => {
    const { management, made } = await setUp({ apiIds: ["another", "mine", "stopped mine", "new mine"] });
    const foreign = management.change(commandsOn("theirs")[kind]);
    if (kind === "createOwner") await expect(foreign).rejects.toThrow(Forbidden);
    else expect(await foreign).toEqual({ outcome: "missing" });
    expect(JSON.stringify(made)).not.toContain("theirs");
    // A root key that is limited to APIs creates none, not even one of those.
    const outcome = kind === "createApi" ? "missing" : "done";
    expect(await management.change(commandsOn("mine")[kind])).toMatchObject({ outcome });
  });
});

describe.each(queryKinds)("the query %s", (kind) => {
  it("shows what belongs to an API of the root key, and nothing else", async () => {
    const { management } = await setUp({ apiIds: ["mine"] });
    expect(await management.read(queriesOn("mine")[kind])).toBeDefined();
    const nothing = {
      keys: { items: [] },
      events: { items: [] },
      keptAnswer: undefined,
      key: undefined,
      keyOfSecret: undefined,
      api: undefined,
      apis: { items: [] },
      owner: undefined,
      ownerOfKey: undefined,
      owners: { items: [] },
      spending: expect.objectContaining({ counters: [undefined] }),
    }[kind];
    expect(await management.read(queriesOn("mine")[kind])).not.toEqual(nothing);
    // It names no API.
    if (kind === "apis") {
      expect(await management.read(queriesOn("mine")[kind])).toMatchObject({ items: [{ id: "mine" }] });
      const { management: others } = await setUp({ apiIds: ["unknown"] });
      expect(await others.read(queriesOn("mine")[kind])).toEqual(nothing);
      return;
    }
    if (kind === "owners") {
      expect(await management.read(queriesOn("mine")[kind])).toMatchObject({ items: [{ id: "owner of mine" }] });
      const { management: others } = await setUp({ apiIds: ["unknown"] });
      expect(await others.read(queriesOn("mine")[kind])).toEqual(nothing);
      return;
    }
    expect(await management.read(queriesOn("theirs")[kind])).toEqual(nothing);
    expect(await management.read(queriesOn("unknown")[kind])).toEqual(nothing);
  });
});

describe("a list", () => {
  it.each([
    { kind: "keys", ownerId: "owner", limit: 10 },
    { kind: "events", limit: 10 },
    { kind: "apis", limit: 10 },
    { kind: "owners", limit: 10 },
  ] as const)("of $kind is asked for within the APIs of the root key", async (list) => {
    const limited = await setUp({ apiIds: ["mine", "another"] });
    await limited.management.read(list);
    expect(limited.asked).toEqual([{ ...list, apiIds: ["mine", "another"] }]);
    const unlimited = await setUp();
    await unlimited.management.read(list);
    expect(unlimited.asked).toEqual([list]);
  });
});
