import type { RootKeyVerdict } from "../../src/domain/root-key.ts";
import type { Command, IdempotencyRecord } from "../../src/store/commands.ts";
import type { Management } from "../../src/store/management.ts";
import type { Query } from "../../src/store/queries.ts";
import { managementWithin } from "../../src/usecases/management-within.ts";
import { sampleOwner } from "../contract/owner-cases.ts";
import { sampleKey } from "../contract/sample-keys.ts";
import { createApi, createKey, createOwner, stopApi, testEvent } from "../support/manage.ts";
import type { RootKeyCommand } from "../support/memory-root-keys.ts";
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

/** Those that are not about root keys. */
export type CommandKind = Exclude<Command["kind"], RootKeyCommand["kind"]>;

/** Every command, on a key or an owner of this API. */
export function commandsOn(apiId: string): { readonly [Kind in CommandKind]: Extract<Command, { kind: Kind }> } {
  const ownerId = `owner of ${apiId}`;
  const keyId = `key_${apiId}`;
  return {
    createKey: {
      kind: "createKey",
      created: sampleKey(clock, { id: "key_new", apiId, secretDigest: "new" }),
      event: testEvent(),
    },
    updateKey: { kind: "updateKey", id: keyId, changes: { name: "name" }, event: testEvent() },
    updateRemaining: { kind: "updateRemaining", id: keyId, op: "set", value: 1, event: testEvent() },
    rerollKey: { kind: "rerollKey", id: keyId, secretDigest: "new", start: "start", overlapMs: 0, event: testEvent() },
    deleteKey: { kind: "deleteKey", id: keyId, event: testEvent() },
    importKeys: {
      kind: "importKeys",
      apiId,
      keys: [{ ...sampleKey(clock, { apiId, secretDigest: "imported" }), eventId: testEvent().id }],
      event: testEvent(),
    },
    createApi: {
      kind: "createApi",
      created: { id: `new ${apiId}`, name: undefined, defaults: {}, ownersRequired: false },
      event: testEvent(),
    },
    updateApi: { kind: "updateApi", id: apiId, changes: { name: "name" }, event: testEvent() },
    stopApi: { kind: "stopApi", id: apiId, event: testEvent() },
    deleteApiKeys: { kind: "deleteApiKeys", id: `stopped ${apiId}`, limit: 1, event: testEvent() },
    deleteApi: { kind: "deleteApi", id: `stopped ${apiId}`, isStopped: false, event: testEvent() },
    createOwner: { kind: "createOwner", created: sampleOwner("new owner", { apiIds: [apiId] }), event: testEvent() },
    updateOwner: { kind: "updateOwner", id: ownerId, changes: { enabled: false }, event: testEvent() },
    updateOwnerRemaining: { kind: "updateOwnerRemaining", id: ownerId, op: "increment", value: 1, event: testEvent() },
    stopOwner: { kind: "stopOwner", id: ownerId, event: testEvent() },
    endOwnerKeys: {
      kind: "endOwnerKeys",
      id: ownerId,
      madeAtMs: 1,
      apiId,
      how: "delete",
      limit: 1,
      event: testEvent(),
    },
    deleteOwner: { kind: "deleteOwner", id: ownerId, event: testEvent() },
  };
}

/** Those that are not about root keys. */
export type KeyQuery = Exclude<Query["kind"], "rootKey" | "rootKeys">;

/** Every query, for a key of this API. */
export function queriesOn(apiId: string): { readonly [Kind in KeyQuery]: Extract<Query, { kind: Kind }> } {
  return {
    keptAnswer: { kind: "keptAnswer", lookup: `of ${apiId}`, nowMs: clock.nowMs() },
    key: { kind: "key", id: `key_${apiId}` },
    keyOfSecret: { kind: "keyOfSecret", digest: apiId, nowMs: clock.nowMs() },
    keys: { kind: "keys", apiId, limit: 10 },
    events: { kind: "events", targetId: `key_${apiId}`, limit: 10 },
    api: { kind: "api", id: apiId },
    apis: { kind: "apis", limit: 10 },
    owner: { kind: "owner", id: `owner of ${apiId}` },
    ownerOfKey: { kind: "ownerOfKey", keyId: `key_${apiId}` },
    owners: { kind: "owners", limit: 10 },
    spending: { kind: "spending", of: "key", ids: [`key_${apiId}`], hours: [] },
  };
}
