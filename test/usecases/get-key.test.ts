import { expect, it } from "vitest";
import { sha256 } from "../../src/ambient/crypto.ts";
import { Secret } from "../../src/domain/secret.ts";
import { getKey } from "../../src/usecases/get-key.ts";
import { sampleKey } from "../contract/sample-keys.ts";
import { createKey } from "../support/manage.ts";
import { createMemoryStore } from "../support/memory-store.ts";
import { TestClock } from "../support/test-clock.ts";

it("getKey finds a key by its id or its secret, and nothing else", async () => {
  const clock = new TestClock();
  const { management } = createMemoryStore(clock);
  const secret = "the secret of a key";
  const key = sampleKey(clock, { secretDigest: sha256(secret) });
  await createKey(management, key);
  const idBy = async (by: Parameters<typeof getKey>[1]) => (await getKey(management, by, { clock }))?.id;
  expect(await idBy({ keyId: key.id })).toBe(key.id);
  expect(await idBy({ key: new Secret(secret) })).toBe(key.id);
  expect(await idBy({ keyId: secret })).toBeUndefined();
  expect(await idBy({ key: new Secret(key.id) })).toBeUndefined();
  expect(await idBy({ key: new Secret(key.secretDigest) })).toBeUndefined();
});
