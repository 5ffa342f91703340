import { expect, it } from "vitest";
import { sha256 } from "../../src/ambient/crypto.ts";
import { createSystemRandom } from "../../src/ambient/random.ts";
import { formatKey } from "../../src/domain/key-format.ts";
import { Secret } from "../../src/domain/secret.ts";
import { IdempotencyConflict } from "../../src/usecases/idempotency.ts";
import { type RerollKeyRequest, rerollKey } from "../../src/usecases/reroll-key.ts";
import { sampleKey } from "../contract/sample-keys.ts";
import { createKey, deleteKey } from "../support/manage.ts";
import { createMemoryStore } from "../support/memory-store.ts";
import { TestClock } from "../support/test-clock.ts";

const random = createSystemRandom();

async function setUp(start = "live_abcd") {
  const clock = new TestClock();
  const store = createMemoryStore(clock);
  const key = sampleKey(clock, { start });
  await createKey(store.management, key);
  const reroll = (given: Partial<RerollKeyRequest> = {}, idempotencyKey?: string) =>
    rerollKey(
      store.management,
      { keyId: key.id, overlapMs: 0, byteLength: undefined, ...given },
      idempotencyKey === undefined
        ? undefined
        : { rootKey: new Secret("root"), value: new Secret(idempotencyKey), method: "RerollKey" },
      { clock, random },
    );
  return { ...store, clock, key, reroll };
}

it("a reroll answers a new secret of the same key, which is found by it", async () => {
  const { keys, key, reroll, clock } = await setUp();
  const first = await reroll({ overlapMs: 5 });
  expect(first).toEqual({ keyId: key.id, key: expect.stringMatching(/^live_[0-9A-Za-z]{39}$/) });
  expect(await keys.findByDigest(sha256(first?.key ?? ""))).toMatchObject({ id: key.id, secretExpiresAtMs: undefined });
  expect(await keys.findByDigest(key.secretDigest)).toMatchObject({ secretExpiresAtMs: clock.nowMs() + 5 });
  const second = await reroll({ byteLength: 16 });
  expect(second?.key).toMatch(/^live_[0-9A-Za-z]{28}$/);
  expect(await reroll({ keyId: "key_none" })).toBeUndefined();
});

it.each([
  { start: formatKey(undefined, random.bytes(24)).start, lead: "" },
  { start: formatKey("a_1", random.bytes(24)).start, lead: "a_1_" },
  { start: formatKey("sixteen_letters_", random.bytes(24)).start, lead: "" },
  { start: "sk_test_9f3a", lead: "sk_test_" },
  { start: "whatever it was", lead: "" },
  { start: "_abcd", lead: "" },
  { start: "", lead: "" },
])("a new secret of a key that starts with '$start' begins with '$lead'", async ({ start, lead }) => {
  const { reroll } = await setUp(start);
  expect((await reroll())?.key).toMatch(new RegExp(`^${lead}[0-9A-Za-z]{39}$`));
});

it("a repeated reroll gets the same secret and changes nothing; another request is a conflict", async () => {
  const { management, key, reroll } = await setUp();
  const first = await reroll({ overlapMs: 1000 }, "order");
  expect(await reroll({ overlapMs: 1000 }, "order")).toEqual(first);
  expect(await management.read({ kind: "key", id: key.id })).toMatchObject({ version: 2 });
  await expect(reroll({ overlapMs: 1001 }, "order")).rejects.toThrow(IdempotencyConflict);
  expect(await reroll({ overlapMs: 1000 }, "another")).not.toEqual(first);
  await deleteKey(management, key.id);
  await expect(reroll({ overlapMs: 1000 }, "order")).rejects.toThrow(`${key.id}, which was deleted since`);
  expect(await reroll({ overlapMs: 1000 }, "new")).toBeUndefined();
});
