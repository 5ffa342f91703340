import type { RootKeyVerdict } from "../../src/domain/root-key.ts";
import type { ApiCommand, Command, IdempotencyRecord, KeyCommand, OwnerCommand } from "../../src/store/commands.ts";
import type { Management } from "../../src/store/management.ts";
import type { Query } from "../../src/store/queries.ts";
import { managementWithin } from "../../src/usecases/management-within.ts";
import { sampleOwner } from "../contract/owner-cases.ts";
import { sampleKey } from "../contract/sample-keys.ts";
import { createApi, createKey, createOwner, stopApi, testEvent } from "../support/manage.ts";
import { createMemoryStore } from "../support/memory-store.ts";
import { TestClock } from "../support/test-clock.ts";

export const clock = new TestClock();

/** A store with a key and an owner of the API `mine` and of `theirs`, managed under a root key that may do this. */
export async function setUp(allowed: Partial<RootKeyVerdict> = {}) {
  const store = createMemoryStore(clock);
  for (const apiId of ["mine", "theirs"]) {
    const ownerId = `owner of ${apiId}`;
    const key = sampleKey(clock, { id: `key_${apiId}`, apiId, ownerId, secretDigest: apiId, remaining: 5 });
    await createKey(store.management, key, recordOf(`of ${apiId}`, key.id));
    await createOwner(store.management, sampleOwner(ownerId, { apiIds: [apiId], remaining: 5 }));
  }
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
  return { management: managementWithin({ change, read }, verdict), made, asked, store };
}

function recordOf(lookup: string, targetId: string): IdempotencyRecord {
  const times = { createdAtMs: clock.nowMs(), expiresAtMs: clock.nowMs() + 1000 };
  return { lookup, targetId, requestDigest: "request", sealedAnswer: "sealed", ...times };
}

export type CommandKind = (KeyCommand | ApiCommand | OwnerCommand)["kind"];

/** Every command, on a key or an owner of this API. */
export function commandsOn(apiId: string): { readonly [Kind in CommandKind]: Extract<Command, { kind: Kind }> } {
  const ownerId = `owner of ${apiId}`;
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
    createOwner: { kind: "createOwner", owner: sampleOwner("new owner", { apiIds: [apiId] }), event: testEvent() },
    updateOwner: { kind: "updateOwner", ownerId, changes: { enabled: false }, event: testEvent() },
    updateOwnerRemaining: { kind: "updateOwnerRemaining", ownerId, op: "increment", value: 1, event: testEvent() },
    stopOwner: { kind: "stopOwner", ownerId, event: testEvent() },
    deleteOwner: { kind: "deleteOwner", ownerId, event: testEvent() },
  };
}

/** Those that are not about root keys. */
export type KeyQuery = Exclude<Query["kind"], "rootKey" | "rootKeys">;

/** Every query, for a key of this API. */
export function queriesOn(apiId: string): { readonly [Kind in KeyQuery]: Extract<Query, { kind: Kind }> } {
  return {
    keptAnswer: { kind: "keptAnswer", lookup: `of ${apiId}`, nowMs: clock.nowMs() },
    key: { kind: "key", keyId: `key_${apiId}` },
    keyOfSecret: { kind: "keyOfSecret", digest: apiId, nowMs: clock.nowMs() },
    keys: { kind: "keys", apiId, limit: 10 },
    events: { kind: "events", targetId: `key_${apiId}`, limit: 10 },
    api: { kind: "api", apiId },
    apiDefaults: { kind: "apiDefaults", apiId },
    apis: { kind: "apis", limit: 10 },
    owner: { kind: "owner", ownerId: `owner of ${apiId}` },
    ownerOfKey: { kind: "ownerOfKey", keyId: `key_${apiId}` },
    owners: { kind: "owners", limit: 10 },
  };
}
