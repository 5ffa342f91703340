import { describe, expect, it } from "vitest";
import { Forbidden } from "../../src/domain/forbidden.ts";
import type { RootKeyVerdict } from "../../src/domain/root-key.ts";
import { RootKeyRefused } from "../../src/domain/root-key-refused.ts";
import { Secret } from "../../src/domain/secret.ts";
import type { ApiCommand, Command, IdempotencyRecord, KeyCommand } from "../../src/store/commands.ts";
import type { Management } from "../../src/store/management.ts";
import type { Query } from "../../src/store/queries.ts";
import { createRootAccess } from "../../src/usecases/root-access.ts";
import { sampleKey } from "../contract/sample-keys.ts";
import { createApi, createKey, stopApi, testEvent } from "../support/manage.ts";
import { createMemoryStore } from "../support/memory-store.ts";
import { TestClock } from "../support/test-clock.ts";

const clock = new TestClock();
const rootKey = new Secret("root key");

/** A store with a key of the API `mine` and one of `theirs`, managed under a root key that may do this. */
async function setUp(allowed: Partial<RootKeyVerdict> = {}) {
  const store = createMemoryStore(clock);
  const mine = sampleKey(clock, { id: "key_mine", apiId: "mine", secretDigest: "mine", remaining: 5 });
  const theirs = sampleKey(clock, { id: "key_theirs", apiId: "theirs", secretDigest: "theirs", remaining: 5 });
  await createKey(store.management, mine, recordOf("of mine", mine.id));
  await createKey(store.management, theirs, recordOf("of theirs", theirs.id));
  for (const apiId of ["stopped mine", "stopped theirs"]) {
    await createApi(store.management, apiId);
    await stopApi(store.management, apiId);
  }
  const made: Command[] = [];
  const change: Management["change"] = (command, record) => {
    made.push(command);
    return store.management.change(command, record);
  };
  const verdict: RootKeyVerdict = {
    rootKeyId: "root_1",
    permissions: ["*"],
    apiIds: undefined,
    expiresAtMs: undefined,
    ...allowed,
  };
  const asked: Query[] = [];
  const read: Management["read"] = (query) => {
    asked.push(query);
    return store.management.read(query);
  };
  const access = createRootAccess(() => verdict, { change, read }, clock);
  return { management: access.manage(rootKey), made, asked };
}

function recordOf(lookup: string, targetId: string): IdempotencyRecord {
  const times = { createdAtMs: clock.nowMs(), expiresAtMs: clock.nowMs() + 1000 };
  return { lookup, targetId, requestDigest: "request", sealedAnswer: "sealed", ...times };
}

/** Every command, on a key of this API. */
function commandsOn(apiId: string): {
  readonly [Kind in (KeyCommand | ApiCommand)["kind"]]: Extract<Command, { kind: Kind }>;
} {
  const keyId = `key_${apiId}`;
  return {
    createKey: {
      kind: "createKey",
      key: sampleKey(clock, { id: "key_new", apiId, secretDigest: "new" }),
      event: testEvent(),
    },
    updateKey: { kind: "updateKey", keyId, changes: { name: "name" }, event: testEvent() },
    updateRemaining: { kind: "updateRemaining", keyId, op: "set", value: 1, event: testEvent() },
    rerollKey: { kind: "rerollKey", keyId, secretDigest: "new", start: "start", overlapMs: 0, event: testEvent() },
    deleteKey: { kind: "deleteKey", keyId, event: testEvent() },
    importKeys: {
      kind: "importKeys",
      apiId,
      keys: [{ ...sampleKey(clock, { apiId, secretDigest: "imported" }), eventId: testEvent().id }],
      event: testEvent(),
    },
    createApi: { kind: "createApi", apiId: `new ${apiId}`, name: undefined, defaults: {}, event: testEvent() },
    updateApi: { kind: "updateApi", apiId, changes: { name: "name" }, event: testEvent() },
    stopApi: { kind: "stopApi", apiId, event: testEvent() },
    deleteApiKeys: { kind: "deleteApiKeys", apiId: `stopped ${apiId}`, limit: 1, event: testEvent() },
    deleteApi: { kind: "deleteApi", apiId: `stopped ${apiId}`, isStopped: false, event: testEvent() },
  };
}

/** Those that are not about root keys. */
type KeyQuery = Exclude<Query["kind"], "rootKey" | "rootKeys">;

/** Every query, for a key of this API. */
function queriesOn(apiId: string): { readonly [Kind in KeyQuery]: Extract<Query, { kind: Kind }> } {
  return {
    keptAnswer: { kind: "keptAnswer", lookup: `of ${apiId}`, nowMs: clock.nowMs() },
    key: { kind: "key", keyId: `key_${apiId}` },
    keyOfSecret: { kind: "keyOfSecret", digest: apiId, nowMs: clock.nowMs() },
    keys: { kind: "keys", apiId, limit: 10 },
    events: { kind: "events", targetId: `key_${apiId}`, limit: 10 },
    api: { kind: "api", apiId },
    apiDefaults: { kind: "apiDefaults", apiId },
    apis: { kind: "apis", limit: 10 },
  };
}

const commandKinds = Object.keys(commandsOn("mine")) as (KeyCommand | ApiCommand)["kind"][];
const queryKinds = Object.keys(queriesOn("mine")) as KeyQuery[];
const permissionOf: Readonly<Record<(KeyCommand | ApiCommand)["kind"] | KeyQuery, string | undefined>> = {
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
    expect(await management.change(commandsOn("theirs")[kind])).toEqual({ outcome: "missing" });
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
    }[kind];
    expect(await management.read(queriesOn("mine")[kind])).not.toEqual(nothing);
    // It names no API.
    if (kind === "apis") {
      expect(await management.read(queriesOn("mine")[kind])).toMatchObject({ apis: [{ id: "mine" }] });
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
    { kind: "keys", ownerId: "owner", limit: 10 },
    { kind: "events", limit: 10 },
  ] as const)("of $kind is asked for within the APIs of the root key", async (list) => {
    const limited = await setUp({ apiIds: ["mine", "another"] });
    await limited.management.read(list);
    expect(limited.asked).toEqual([{ ...list, apiIds: ["mine", "another"] }]);
    const unlimited = await setUp();
    await unlimited.management.read(list);
    expect(unlimited.asked).toEqual([list]);
  });
});
