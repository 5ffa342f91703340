import { describe, expect, it } from "vitest";
import { Forbidden } from "../../src/domain/forbidden.ts";
import { RootKeyRefused } from "../../src/domain/root-key-refused.ts";
import { type CommandKind, clock, commandsOn, type KeyQuery, queriesOn, setUp } from "./access-fixture.ts";

const commandKinds = Object.keys(commandsOn("mine")) as CommandKind[];
const queryKinds = Object.keys(queriesOn("mine")) as KeyQuery[];
const permissionOf: Readonly<Record<CommandKind | KeyQuery, string | undefined>> = {
  createKey: "keys.create",
  updateKey: "keys.update",
  updateRemaining: "keys.update",
  rerollKey: "keys.update",
  deleteKey: "keys.delete",
  importKeys: "keys.create",
  keptAnswer: undefined,
  key: "keys.read",
  keyOfSecret: "keys.read",
  keys: "keys.read",
  events: "audit.read",
  createApi: "apis.create",
  updateApi: "apis.update",
  stopApi: "apis.delete",
  deleteApiKeys: "apis.delete",
  deleteApi: "apis.delete",
  api: "apis.read",
  apiDefaults: "keys.create",
  apis: "apis.read",
  createOwner: "owners.create",
  updateOwner: "owners.update",
  updateOwnerRemaining: "owners.update",
  stopOwner: "owners.delete",
  deleteOwner: "owners.delete",
  owner: "owners.read",
  ownerOfKey: "keys.read",
  owners: "owners.read",
};
const allPermissions = [...new Set([...Object.values(permissionOf), "keys.verify"])].filter((one) => one !== undefined);

describe.each(commandKinds)("the command %s", (kind) => {
  it("is carried out under a root key with its permission, which becomes the actor of its event", async () => {
    const { management, made } = await setUp({ permissions: [permissionOf[kind] as string] });
    expect(await management.change(commandsOn("mine")[kind])).toMatchObject({ outcome: "done" });
    expect(made.map(({ event }) => event.actor)).toEqual(["root_1"]);
  });

  it("is forbidden without it, by name, and nothing is changed", async () => {
    const permission = permissionOf[kind] as string;
    const { management, made } = await setUp({ permissions: allPermissions.filter((other) => other !== permission) });
    const refused = management.change(commandsOn("mine")[kind]);
    await expect(refused).rejects.toThrow(new Forbidden(`the root key lacks the permission ${permission}`));
    expect(made).toEqual([]);
  });

  it("finds what belongs to an API of the root key, and nothing else", async () => {
    const { management, made } = await setUp({ apiIds: ["another", "mine", "stopped mine", "new mine"] });
    const foreign = management.change(commandsOn("theirs")[kind]);
    if (kind === "createOwner") await expect(foreign).rejects.toThrow(Forbidden);
    else expect(await foreign).toEqual({ outcome: "missing" });
    expect(made).toEqual([]);
    // A root key that is limited to APIs creates none, not even one of those.
    const outcome = kind === "createApi" ? "missing" : "done";
    expect(await management.change(commandsOn("mine")[kind])).toMatchObject({ outcome });
  });

  it("is refused when the root key has expired", async () => {
    const { management, made } = await setUp({ expiresAtMs: clock.nowMs() });
    await expect(management.change(commandsOn("mine")[kind])).rejects.toThrow(RootKeyRefused);
    expect(made).toEqual([]);
    const { management: later } = await setUp({ expiresAtMs: clock.nowMs() + 1 });
    expect(await later.change(commandsOn("mine")[kind])).toMatchObject({ outcome: "done" });
  });
});

describe.each(queryKinds)("the query %s", (kind) => {
  it("is answered under a root key with its permission", async () => {
    const { management } = await setUp({ permissions: [permissionOf[kind] ?? "audit.read"] });
    expect(await management.read(queriesOn("mine")[kind])).toBeDefined();
  });

  it("shows what belongs to an API of the root key, and nothing else", async () => {
    const { management } = await setUp({ apiIds: ["mine"] });
    expect(await management.read(queriesOn("mine")[kind])).toBeDefined();
    const nothing = {
      keys: { keys: [] },
      events: { events: [] },
      keptAnswer: undefined,
      key: undefined,
      keyOfSecret: undefined,
      api: undefined,
      apiDefaults: undefined,
      apis: { apis: [] },
      owner: undefined,
      ownerOfKey: undefined,
      owners: { owners: [] },
    }[kind];
    expect(await management.read(queriesOn("mine")[kind])).not.toEqual(nothing);
    // It names no API.
    if (kind === "apis") {
      expect(await management.read(queriesOn("mine")[kind])).toMatchObject({ apis: [{ id: "mine" }] });
      const { management: others } = await setUp({ apiIds: ["unknown"] });
      expect(await others.read(queriesOn("mine")[kind])).toEqual(nothing);
      return;
    }
    if (kind === "owners") {
      expect(await management.read(queriesOn("mine")[kind])).toMatchObject({ owners: [{ id: "owner of mine" }] });
      const { management: others } = await setUp({ apiIds: ["unknown"] });
      expect(await others.read(queriesOn("mine")[kind])).toEqual(nothing);
      return;
    }
    expect(await management.read(queriesOn("theirs")[kind])).toEqual(nothing);
    expect(await management.read(queriesOn("unknown")[kind])).toEqual(nothing);
  });

  it("is refused when the root key has expired", async () => {
    const { management } = await setUp({ expiresAtMs: clock.nowMs() });
    await expect(management.read(queriesOn("mine")[kind])).rejects.toThrow(RootKeyRefused);
  });
});

describe("reading a key", () => {
  it("is forbidden without the permission, by name", async () => {
    const permissions = ["keys.delete", "keys.verify", "apis.*"];
    const { management } = await setUp({ permissions });
    for (const kind of ["key", "keyOfSecret", "keys"] as const) {
      const refused = management.read(queriesOn("mine")[kind]);
      await expect(refused).rejects.toThrow(new Forbidden("the root key lacks the permission keys.read"));
    }
  });

  it("by its id is part of creating and changing it: a repeated request is answered with it", async () => {
    for (const permission of ["keys.create", "keys.update"]) {
      const { management } = await setUp({ permissions: [permission] });
      expect(await management.read(queriesOn("mine").key)).toBeDefined();
    }
  });
});

describe("a list", () => {
  it.each([
    { kind: "keys", ownerId: "owner", limit: 10, by: "apiIds" },
    { kind: "events", limit: 10, by: "apiIds" },
    { kind: "apis", limit: 10, by: "within" },
    { kind: "owners", limit: 10, by: "within" },
  ] as const)("of $kind is asked for within the APIs of the root key", async ({ by, ...list }) => {
    const limited = await setUp({ apiIds: ["mine", "another"] });
    await limited.management.read(list);
    expect(limited.asked).toEqual([{ ...list, [by]: ["mine", "another"] }]);
    const unlimited = await setUp();
    await unlimited.management.read(list);
    expect(unlimited.asked).toEqual([list]);
  });
});
