import type { JsonObject } from "@bufbuild/protobuf";
import pg from "pg";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { unlimitedRootKey } from "../../../src/domain/root-key.ts";
import { explainPermission } from "../../../src/rpc/all-endpoints.ts";
import { createReadHolders } from "../../../src/usecases/read-holders.ts";
import { sampleOwner } from "../../contract/owner-cases.ts";
import { sampleKey } from "../../contract/sample-keys.ts";
import { composePublicApi } from "../../support/compose-public-api.ts";
import { createKey, createOwner } from "../../support/manage.ts";
import { openTestStore } from "../../support/open-test-store.ts";
import { TestClock } from "../../support/test-clock.ts";
import { hasPostgres } from "../../support/test-database.ts";

/** A method that names something by an id, and its request. */
const calls: [string, (of: { keyId: string; ownerId: string; apiId: string }) => object][] = [
  ["keys.getKey", ({ keyId }) => ({ keyId })],
  ["keys.explainKey", ({ keyId }) => ({ keyId })],
  ["keys.updateKey", ({ keyId }) => ({ keyId, name: "name" })],
  ["keys.updateKey", ({ keyId }) => ({ keyId, ratelimit: { limit: 5 } })],
  ["keys.updateKey", ({ keyId }) => ({ keyId, name: "name", ifVersion: 1 })],
  ["keys.updateRemaining", ({ keyId }) => ({ keyId, op: "increment", value: 1 })],
  ["keys.rerollKey", ({ keyId }) => ({ keyId })],
  ["keys.deleteKey", ({ keyId }) => ({ keyId })],
  ["owners.getOwner", ({ ownerId }) => ({ ownerId })],
  ["owners.updateOwner", ({ ownerId }) => ({ ownerId, enabled: false })],
  ["owners.updateOwner", ({ ownerId }) => ({ ownerId, refill: { amount: 5 } })],
  ["owners.updateRemaining", ({ ownerId }) => ({ ownerId, op: "set", value: 1 })],
  ["owners.deleteOwner", ({ ownerId }) => ({ ownerId })],
  ["owners.deleteOwner", ({ ownerId }) => ({ ownerId, keys: "delete" })],
  ["apis.getApi", ({ apiId }) => ({ apiId })],
  ["apis.updateApi", ({ apiId }) => ({ apiId, name: "name" })],
  ["apis.deleteApi", ({ apiId }) => ({ apiId })],
];

const mine = { keyId: "key_mine", ownerId: "owner of mine", apiId: "mine" };
const theirs = { keyId: "key_theirs", ownerId: "owner of theirs", apiId: "theirs" };
const nothing = { keyId: "key_nothing", ownerId: "owner of nothing", apiId: "nothing" };

/** The public API on Postgres for a root key that is limited to one API, with the statements that each call makes. */
async function setUp() {
  const clock = new TestClock();
  const store = await openTestStore();
  for (const { keyId, ownerId, apiId } of [mine, theirs]) {
    const limits = { rateLimit: { mode: "strict", limit: 9, durationMs: 1000 }, remaining: 5 } as const;
    const key = sampleKey(clock, { id: keyId, apiId, ownerId, secretDigest: `digest of ${apiId}`, ...limits });
    await createKey(store.management, key);
    await createOwner(store.management, sampleOwner(ownerId, { apiIds: [apiId], remaining: 5 }));
  }
  const checkRootKey = () => ({ ...unlimitedRootKey("root_1"), apiIds: ["mine"] });
  const { management } = store;
  const { onePort } = composePublicApi((parts) => ({
    checkRootKey,
    manages: { management },
    readHolders: createReadHolders({ ...parts, checkRootKey, management, permission: explainPermission }),
  }));
  const port = await onePort.listen(0, "127.0.0.1");
  onTestFinished(() => onePort.close(0));
  const made = vi.spyOn(pg.Client.prototype, "query");
  onTestFinished(() => made.mockRestore());
  return async (method: string, body: object, idempotencyKey?: string) => {
    made.mockClear();
    const response = await fetch(`http://127.0.0.1:${port}/v1/${method}`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        authorization: "Bearer a-root-key",
        ...(idempotencyKey && { "idempotency-key": idempotencyKey }),
      },
      body: JSON.stringify(body),
    });
    const { error } = (await response.json()) as { error?: JsonObject };
    const statements = made.mock.calls.map(([asked]) => (asked as unknown as { text?: string }).text ?? String(asked));
    return { status: response.status, error: { ...error, requestId: undefined }, statements };
  };
}

describe.runIf(hasPostgres)("a root key that is limited to some APIs", () => {
  it("gets the same answer by the same statements for what is foreign and for what does not exist", async () => {
    const send = await setUp();
    for (const [method, bodyOf] of calls) {
      for (const idempotencyKey of [
        undefined,
        `${method} ${JSON.stringify(bodyOf(mine))}`.replaceAll(/[^!-~]/g, "-"),
      ]) {
        const ofForeign = await send(method, bodyOf(theirs), idempotencyKey);
        expect([method, await send(method, bodyOf(nothing), idempotencyKey)]).toEqual([method, ofForeign]);
        expect(ofForeign.status).toBe(404);
      }
    }
  });

  it("gets the same answer also under an Idempotency-Key that was used for something of its own", async () => {
    const send = await setUp();
    for (const [index, [method, bodyOf]] of calls.entries()) {
      if (!method.startsWith("keys.update")) continue;
      const idempotencyKey = `order-${index}`;
      await send(method, { ...bodyOf(mine), ifVersion: undefined }, idempotencyKey);
      const ofForeign = await send(method, bodyOf(theirs), idempotencyKey);
      expect([method, await send(method, bodyOf(nothing), idempotencyKey)]).toEqual([method, ofForeign]);
    }
  });
});
