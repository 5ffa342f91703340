import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { sha256 } from "../../src/ambient/crypto.ts";
import { createSystemRandom } from "../../src/ambient/random.ts";
import type { KeyDefaults } from "../../src/domain/fields.ts";
import type { NewKey } from "../../src/domain/key.ts";
import { isWellFormedKey } from "../../src/domain/key-format.ts";
import { Secret } from "../../src/domain/secret.ts";
import { Unavailable } from "../../src/domain/unavailable.ts";
import type { Command, IdempotencyRecord } from "../../src/store/commands.ts";
import type { Outcome } from "../../src/store/management.ts";
import type { Answers, Query } from "../../src/store/queries.ts";
import { StateConflict } from "../../src/usecases/conflict.ts";
import { type CreateKeyRequest, createKey as createKeyIn } from "../../src/usecases/create-key.ts";
import { ExpiresInThePast, NoSuchApi } from "../../src/usecases/create-with-secret.ts";
import { createIdempotency, IdempotencyConflict, type IdempotencyKey } from "../../src/usecases/idempotency.ts";
import { done } from "../support/manage.ts";
import { plainKey } from "../support/plain-key.ts";
import { TestClock } from "../support/test-clock.ts";
import { inTurn } from "./fakes.ts";

const clock = new TestClock("2026-11-15T12:00:00Z");
const deps = { clock, random: createSystemRandom() };
const nowMs = clock.nowMs();
const away = new Unavailable("away");
const request: CreateKeyRequest = {
  ...plainKey,
  apiId: "api",
  prefix: undefined,
  byteLength: undefined,
  useDefaults: true,
};
const expired = { ...request, expiresAtMs: nowMs };
const idempotencyKey = {
  rootKey: new Secret("root key"),
  value: new Secret("order"),
  method: "CreateKey",
  apiId: "the-api",
};
const earlier = { keyId: "key_earlier", key: "live_earlier" };
const created: Outcome = done;

/** The kept answer to an earlier request. */
function keptFor(given: CreateKeyRequest): IdempotencyRecord {
  const event = { id: "evt_earlier", atMs: nowMs - 1000, actor: "root" };
  const command = { kind: "rerollKey", id: earlier.keyId, secretDigest: "", start: "", overlapMs: 0, event } as const;
  return createIdempotency(idempotencyKey, given).record(earlier, command, createSystemRandom());
}

/** A store with these answers. It records what is written to it. */
function setUp(
  given: {
    create?: Outcome | Error;
    kept?: IdempotencyRecord | undefined | Error;
    isGone?: boolean;
    /** Of its API. Absent: there is no such API. */
    defaults?: KeyDefaults;
  } = {},
) {
  const answers = { ...given, key: given.isGone ? undefined : {} };
  const api = given.defaults && { defaults: given.defaults };
  const stored: { key: NewKey; record: IdempotencyRecord | undefined }[] = [];
  const read: string[] = [];
  const outcomes = inTurn("outcomes", [answers.create ?? created]);
  const kept = inTurn("kept answers", [answers.kept]);
  const management = {
    async change(command: Command, record?: IdempotencyRecord) {
      if (command.kind === "createKey") stored.push({ key: command.created, record });
      return outcomes();
    },
    read: <Asked extends Query>({ kind }: Asked) => {
      if (kind === "api") read.push(kind);
      const answer = kind === "key" ? () => answers.key : kind === "api" ? () => api : kept;
      return Promise.resolve().then(answer) as Promise<Answers[Asked["kind"]]>;
    },
  };
  const createKey = (asked: CreateKeyRequest, key?: IdempotencyKey) => createKeyIn(management, asked, key, deps);
  return { stored, read, management, createKey };
}

describe("a key", () => {
  it("is stored as it was asked for, without its secret", async () => {
    const asked = {
      ...request,
      ownerId: "owner",
      name: "name",
      meta: { plan: "pro" },
      enabled: false,
      expiresAtMs: nowMs + 1,
      remaining: 7,
      refill: { interval: "daily", amount: 7, carryOver: true },
      rateLimit: { mode: "strict", limit: 3, durationMs: 1000 },
    } as const;
    const { createKey, stored } = setUp();
    const { keyId, key } = await createKey({ ...asked, prefix: "live", byteLength: 16 });

    const { prefix: _, byteLength: __, useDefaults: ___, ...kept } = asked;
    const start = key.slice(0, "live_".length + 4);
    const written = { ...kept, id: keyId, start, createdAtMs: nowMs, secretDigest: sha256(key) };
    expect(stored).toEqual([{ key: written, record: undefined }]);
    expect(Object.keys(stored[0]?.key ?? {}).sort()).toEqual(Object.keys(written).sort());
    expect(JSON.stringify(stored)).not.toContain(key);
  });

  it.each([
    { prefix: undefined, byteLength: undefined, looks: /^[0-9A-Za-z]{39}$/ },
    { prefix: "live", byteLength: undefined, looks: /^live_[0-9A-Za-z]{39}$/ },
    { prefix: undefined, byteLength: 16, looks: /^[0-9A-Za-z]{28}$/ },
    { prefix: "a", byteLength: 255, looks: /^a_[0-9A-Za-z]{349}$/ },
  ])("with the prefix $prefix and $byteLength bytes looks like $looks", async ({ looks, ...form }) => {
    const { key, keyId } = await setUp().createKey({ ...request, ...form });
    expect(key).toMatch(looks);
    expect(isWellFormedKey(key)).toBe(true);
    expect(keyId).toMatch(/^key_[0-9A-Za-z]{22}$/);
  });

  it("differs from every other", async () => {
    const keys = await Promise.all(Array.from({ length: 20 }, () => setUp().createKey(request)));
    expect(new Set(keys.flatMap(({ keyId, key }) => [keyId, key])).size).toBe(40);
  });

  it("is not told before the store has committed it", async () => {
    const { management } = setUp();
    const committing = Promise.withResolvers<Outcome>();
    const slow = { ...management, change: () => committing.promise };
    let told = false;
    const creating = createKeyIn(slow, request, undefined, deps).then((answer) => {
      told = true;
      return answer;
    });
    await nextTurn();
    expect(told).toBe(false);
    committing.resolve(created);
    expect(await creating).toHaveProperty("key");
  });

  it("is not told when the store is away", async () => {
    await expect(setUp({ create: away }).createKey(request)).rejects.toBe(away);
  });
});

describe("a key of an API with defaults", () => {
  const defaults: KeyDefaults = {
    prefix: "live",
    byteLength: 16,
    rateLimit: { mode: "strict", limit: 3, durationMs: 1000 },
    remaining: 7,
    refill: { interval: "daily", amount: 7, carryOver: true },
  };

  it("takes them over where its request is silent", async () => {
    const { createKey, stored } = setUp({ defaults });
    const { key } = await createKey({ ...request, remaining: 1 });
    expect(key).toMatch(/^live_[0-9A-Za-z]{28}$/);
    const { rateLimit, refill } = defaults;
    expect(stored[0]?.key).toMatchObject({ rateLimit, remaining: 1, refill });
    expect(stored[0]?.key).not.toHaveProperty("useDefaults");
  });

  it("takes none over where it is not to, and the API is not read", async () => {
    const { createKey, stored, read } = setUp({ defaults });
    const { key } = await createKey({ ...request, useDefaults: false });
    expect(key).toMatch(/^[0-9A-Za-z]{39}$/);
    expect(stored[0]?.key).toMatchObject({ rateLimit: undefined, remaining: undefined, refill: undefined });
    expect(read).toEqual([]);
  });

  it("is asked for by the same request, whatever the defaults are by then", async () => {
    const { createKey, stored } = setUp({ defaults });
    await createKey(request, idempotencyKey);
    const record = stored[0]?.record as IdempotencyRecord;
    expect(record.requestDigest).toBe(keptFor(request).requestDigest);
    expect(record.requestDigest).not.toBe(keptFor({ ...request, useDefaults: false }).requestDigest);
  });
});

describe("a key that its API does not take", () => {
  it("because there is no such API is refused, with what to do", async () => {
    const refused = setUp({ create: { outcome: "missing" } }).createKey(request);
    await expect(refused).rejects.toThrow(NoSuchApi);
    await expect(refused).rejects.toThrow("create it first with apis.createApi");
  });

  it("because the API is being deleted is refused", async () => {
    const refused = setUp({ create: { outcome: "conflict", reason: "apiIsDeleting" } }).createKey(request);
    await expect(refused).rejects.toThrow(new StateConflict("apiIsDeleting"));
  });
});

describe("a key that expires", () => {
  it("in the next millisecond is created", async () => {
    expect(await setUp().createKey({ ...request, expiresAtMs: nowMs + 1 })).toHaveProperty("key");
  });

  const future = "must be in the future";
  const seconds = `${future}, in milliseconds; this looks like seconds`;
  it.each([
    ["now", nowMs, future],
    ["a moment ago", nowMs - 1, future],
    ["at the beginning of time", 1, future],
    ["after a duration in place of a moment", 3_600_000, future],
    ["in an hour, told in seconds", nowMs / 1000 + 3600, seconds],
    ["a while ago, told in seconds", 1e9, seconds],
    ["in three thousand years, told in seconds", 1e11 - 1, seconds],
    ["in 1973", 1e11, future],
  ])("%s is not", async (_, expiresAtMs, message) => {
    const { createKey, stored } = setUp();
    const refused = createKey({ ...request, expiresAtMs });
    await expect(refused).rejects.toThrow(ExpiresInThePast);
    await expect(refused).rejects.toThrow(new RegExp(`^${message}$`));
    expect(stored).toEqual([]);
  });
});

describe("a key asked for with an idempotency key", () => {
  it("is stored with its answer, which a repeat can open", async () => {
    const { createKey, stored } = setUp();
    const answer = await createKey(request, idempotencyKey);
    const record = stored[0]?.record as IdempotencyRecord;
    expect(createIdempotency(idempotencyKey, request).open(record)).toEqual(answer);
    expect(record.createdAtMs).toBe(nowMs);
  });

  const conflict = expect.any(IdempotencyConflict);
  const other = { ...request, remaining: 1 };
  it.each([
    {
      name: "a repeat gets the first answer",
      given: request,
      answers: { create: { outcome: "repeated", record: keptFor(request) } as const },
      outcome: earlier,
      stores: 1,
    },
    {
      name: "a repeat after the key was deleted is a conflict",
      given: request,
      answers: { create: { outcome: "repeated", record: keptFor(request) } as const, isGone: true },
      outcome: new IdempotencyConflict("this Idempotency-Key was used for key_earlier, which was deleted since"),
      stores: 1,
    },
    {
      name: "another request is a conflict",
      given: request,
      answers: { create: { outcome: "repeated", record: keptFor(other) } as const },
      outcome: conflict,
      stores: 1,
    },
    {
      name: "a repeat that comes after the key has expired gets the first answer, and makes no key",
      given: expired,
      answers: { kept: keptFor(expired) },
      outcome: earlier,
      stores: 0,
    },
    {
      name: "another request that comes after the key has expired is a conflict",
      given: expired,
      answers: { kept: keptFor(other) },
      outcome: conflict,
      stores: 0,
    },
    {
      name: "a first request for a key that has expired is refused",
      given: expired,
      answers: { kept: undefined },
      outcome: expect.any(ExpiresInThePast),
      stores: 0,
    },
    {
      name: "a store that is away when it is asked for the first answer is neither",
      given: expired,
      answers: { kept: away },
      outcome: away,
      stores: 0,
    },
    { name: "a store that is away is neither", given: request, answers: { create: away }, outcome: away, stores: 1 },
  ])("$name", async ({ given, answers, outcome, stores }) => {
    const { createKey, stored } = setUp(answers);
    const came = await createKey(given, idempotencyKey).catch((error: unknown) => error);
    expect(came).toEqual(outcome);
    expect(stored).toHaveLength(stores);
  });
});
