import { createHash } from "node:crypto";
import { expect, it } from "vitest";
import { sha256, toDigest } from "../../src/ambient/crypto.ts";
import { createSystemRandom } from "../../src/ambient/random.ts";
import { Secret } from "../../src/domain/secret.ts";
import { requireApis } from "../../src/store/management.ts";
import { StateConflict } from "../../src/usecases/conflict.ts";
import { NoSuchApi } from "../../src/usecases/create-with-secret.ts";
import { IdempotencyConflict } from "../../src/usecases/idempotency.ts";
import { importKeys, type KeyToImport } from "../../src/usecases/import-keys.ts";
import { createApi, deleteKey, stopApi } from "../support/manage.ts";
import { createMemoryStore } from "../support/memory-store.ts";
import { plainKey } from "../support/plain-key.ts";
import { TestClock } from "../support/test-clock.ts";

function setUp() {
  const clock = new TestClock();
  const store = createMemoryStore(clock);
  const run = (keys: readonly KeyToImport[], idempotencyKey?: string, management = store.management) =>
    importKeys(
      management,
      { apiId: "api", keys },
      idempotencyKey === undefined
        ? undefined
        : { rootKey: new Secret("root"), value: new Secret(idempotencyKey), method: "ImportKeys", apiId: "api" },
      { clock, random: createSystemRandom() },
    );
  return { ...store, clock, run };
}

function toImport(text: string, given: Partial<KeyToImport> = {}): KeyToImport {
  return { ...plainKey, digest: sha256(text), start: "", ...given };
}

const idOf = (result: object | undefined) => (result as { keyId: string }).keyId;

it.each(["hex", "base64", "base64url"] as const)(
  "a digest in %s is the one that secrets are looked up by",
  (encoding) => {
    for (const text of ["", "sk_live_1", "☂".repeat(5000)]) {
      const digest = createHash("sha256").update(text).digest(encoding);
      expect(toDigest(digest)).toBe(sha256(text));
      expect(toDigest(encoding === "hex" ? digest.toUpperCase() : digest.replace("=", ""))).toBe(sha256(text));
    }
  },
);

it("keys are imported in the order of the request, and one that cannot be fails alone", async () => {
  const { run, keys, clock } = setUp();
  const results = await run([
    toImport("first", { name: "first" }),
    toImport("past", { expiresAtMs: clock.nowMs() }),
    toImport("first"),
    toImport("second", { expiresAtMs: clock.nowMs() + 1 }),
    toImport("seconds", { expiresAtMs: 1_700_000_000 }),
  ]);
  expect(results).toEqual([
    { keyId: expect.stringMatching(/^key_/) },
    { error: { code: "BAD_REQUEST", message: "expires: must be in the future" } },
    { error: { code: "CONFLICT", message: expect.stringContaining("digest") } },
    { keyId: expect.stringMatching(/^key_/) },
    { error: { code: "BAD_REQUEST", message: expect.stringContaining("this looks like seconds") } },
  ]);
  expect(await keys.findByDigest(sha256("first"))).toMatchObject({ id: idOf(results[0]), apiId: "api", name: "first" });
  expect(await keys.findByDigest(sha256("second"))).toMatchObject({ id: idOf(results[3]) });
  expect(await keys.findByDigest(sha256("past"))).toBeUndefined();
});

it("an import of nothing but expired keys stores nothing", async () => {
  const { run, changes } = setUp();
  expect(await run([toImport("past", { expiresAtMs: 1 })])).toMatchObject([{ error: { code: "BAD_REQUEST" } }]);
  expect((await changes.read(undefined)).hasImportedKeys).toBe(false);
});

it("a repeated import answers the same ids and stores nothing, also when a key has expired or was deleted since", async () => {
  const { run, management, clock } = setUp();
  const request = [
    toImport("kept"),
    toImport("deleted"),
    toImport("past", { expiresAtMs: clock.nowMs() }),
    toImport("expiring", { expiresAtMs: clock.nowMs() + 1 }),
  ];
  const first = await run(request, "once");
  expect(await run(request, "once")).toEqual(first);
  await deleteKey(management, idOf(first[1]));
  clock.advance(10);
  expect(await run(request, "once")).toEqual([
    first[0],
    { error: { code: "CONFLICT", message: expect.stringContaining("deleted") } },
    first[2],
    first[3],
  ]);
  await expect(run(request.slice(1), "once")).rejects.toThrow(IdempotencyConflict);
  const onlyExpiring = request.slice(3);
  const again = setUp();
  const alone = await again.run(onlyExpiring, "alone");
  again.clock.advance(10);
  expect(await again.run(onlyExpiring, "alone")).toEqual(alone);
});

it("an import into an API that is being deleted is a conflict, whoever sends it again", async () => {
  const { run, management } = setUp();
  await createApi(management, "api");
  await stopApi(management, "api");
  for (const _ of [1, 2]) await expect(run([toImport("a")], "one")).rejects.toThrow(new StateConflict("apiIsDeleting"));
});

it("where APIs must exist, an import into an unknown one says how to create it, and works afterwards", async () => {
  const { run, management } = setUp();
  const explicit = requireApis(management);
  await expect(run([toImport("a")], "one", explicit)).rejects.toThrow(NoSuchApi);
  await createApi(management, "api");
  expect(await run([toImport("a")], "one", explicit)).toEqual([{ keyId: expect.any(String) }]);
});
