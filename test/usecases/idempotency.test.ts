import { describe, expect, it } from "vitest";
import { createSystemRandom } from "../../src/ambient/random.ts";
import { Secret } from "../../src/domain/secret.ts";
import { Unavailable } from "../../src/domain/unavailable.ts";
import type { Answers, Query } from "../../src/store/queries.ts";
import { createIdempotency, IdempotencyConflict } from "../../src/usecases/idempotency.ts";
import { inTurn } from "./fakes.ts";

const nowMs = Date.UTC(2026, 0, 15);
const hourMs = 3_600_000;
const answer = { keyId: "key_1", key: "live_the-secret" };
const request = { apiId: "the-api", remaining: 5, meta: { a: 1, b: { c: [1, { d: 2, e: 3 }], f: null } } };
const random = createSystemRandom();

function idempotencyOf(given: { rootKey?: string; value?: string; apiId?: string; request?: object } = {}) {
  const { rootKey = "the-root-key", value = "the-order", apiId } = given;
  const both = { rootKey: new Secret(rootKey), value: new Secret(value), method: "CreateKey", apiId };
  return createIdempotency<typeof answer>(both, given.request ?? request);
}

const changeOf = (id: string) =>
  ({ kind: "deleteKey", id, event: { id: "evt_1", atMs: nowMs, actor: "root_1" } }) as const;
const ours = idempotencyOf();
const kept = ours.record(answer, changeOf("key_1"), random);

describe("an answer that is kept", () => {
  it("counts for 24 hours", () => {
    expect(kept).toMatchObject({ createdAtMs: nowMs, expiresAtMs: nowMs + 24 * hourMs });
  });

  it("is opened by the same caller with the same idempotency key and the same request", () => {
    expect(idempotencyOf().open(kept)).toEqual(answer);
  });

  it("shows neither the answer, nor the request, nor what it is sealed with", () => {
    const text = JSON.stringify(kept);
    for (const secret of ["the-secret", "the-api", "the-root-key", "the-order"]) {
      expect(text).not.toContain(secret);
      expect(text).not.toContain(Buffer.from(secret).toString("base64url").slice(1, -1));
    }
  });

  it("is sealed differently each time, and found in the same place", () => {
    const again = ours.record(answer, changeOf("key_1"), random);
    expect(again.sealedAnswer).not.toBe(kept.sealedAnswer);
    expect(again).toMatchObject({ lookup: kept.lookup, requestDigest: kept.requestDigest });
  });

  it.each([
    { name: "another root key", by: { rootKey: "another-root-key" } },
    { name: "another idempotency key", by: { value: "another-order" } },
  ])("is neither found nor opened with $name", ({ by }) => {
    const other = idempotencyOf(by);
    const theirs = other.record(answer, changeOf("key_1"), random);
    expect(theirs.lookup).not.toBe(kept.lookup);
    // Even where the place and the request are mistaken for its own.
    expect(() => other.open({ ...kept, requestDigest: theirs.requestDigest })).toThrow();
  });

  it("does not tell two callers that they asked for the same", () => {
    const theirs = idempotencyOf({ rootKey: "another-root-key" }).record(answer, changeOf("key_1"), random);
    expect(theirs.requestDigest).not.toBe(kept.requestDigest);
  });

  it("is found but not opened by another root key, where root keys share the idempotency keys of an API", () => {
    const apiId = "the-api";
    const first = idempotencyOf({ apiId }).record(answer, changeOf("key_1"), random);
    const theirs = idempotencyOf({ apiId, rootKey: "another-root-key" });
    expect(theirs.record(answer, changeOf("key_2"), random).lookup).toBe(first.lookup);
    expect(() => theirs.open(first)).toThrow(
      new IdempotencyConflict("this Idempotency-Key was used with another root key, for key_1"),
    );
    for (const other of [idempotencyOf(), idempotencyOf({ apiId: "another" }), idempotencyOf({ apiId, value: "x" })]) {
      expect(other.record(answer, changeOf("key_1"), random).lookup).not.toBe(first.lookup);
    }
  });

  it("is refused when one character of it was changed", () => {
    const changed = (kept.sealedAnswer.startsWith("A") ? "B" : "A") + kept.sealedAnswer.slice(1);
    expect(() => ours.open({ ...kept, sealedAnswer: changed })).toThrow();
  });
});

describe("a request", () => {
  it.each([
    {
      name: "its fields in another order",
      other: { meta: { b: { f: null, c: [1, { e: 3, d: 2 }] }, a: 1 }, remaining: 5, apiId: "the-api" },
    },
    { name: "a field that is not set", other: { ...request, ownerId: undefined } },
  ])("is the same with $name", ({ other }) => {
    expect(idempotencyOf({ request: other }).open(kept)).toEqual(answer);
  });

  it.each([
    { name: "another value", other: { ...request, remaining: 6 } },
    { name: "a value more", other: { ...request, ownerId: "owner" } },
    { name: "a value less", other: { apiId: "the-api", meta: request.meta } },
    { name: "a value of another type", other: { ...request, remaining: "5" } },
    { name: "a list in another order", other: { ...request, meta: { a: 1, b: { c: [{ d: 2, e: 3 }, 1], f: null } } } },
    {
      name: "a value deep inside that is another",
      other: { ...request, meta: { a: 1, b: { c: [1, { d: 2, e: 4 }] } } },
    },
    {
      name: "an object in place of a list",
      other: { ...request, meta: { a: 1, b: { c: { ...request.meta.b.c }, f: null } } },
    },
    { name: "a value elsewhere", other: { ...request, meta: { b: 1, a: request.meta.b } } },
  ])("is another with $name, and gets no answer", ({ other }) => {
    expect(() => idempotencyOf({ request: other }).open(kept)).toThrow(IdempotencyConflict);
  });
});

describe("looking for an answer", () => {
  function setUp(found: typeof kept | undefined | Error) {
    const asked: unknown[] = [];
    const answers = inTurn("kept answers", [found]);
    const keys = {
      async read<Asked extends Query>(query: Asked) {
        if (query.kind === "keptAnswer") asked.push([query.lookup, query.nowMs]);
        return answers() as Answers[Asked["kind"]];
      },
    };
    return { keys, asked };
  }

  it("finds the one that is kept in its place at that moment", async () => {
    const { keys, asked } = setUp(kept);
    expect(await ours.find(keys, nowMs + 1)).toEqual(answer);
    expect(asked).toEqual([[kept.lookup, nowMs + 1]]);
  });

  it("finds nothing where nothing is kept", async () => {
    expect(await ours.find(setUp(undefined).keys, nowMs)).toBeUndefined();
  });

  it("is a conflict where the answer to another request is kept", async () => {
    const other = idempotencyOf({ request: { ...request, remaining: 6 } });
    await expect(other.find(setUp(kept).keys, nowMs)).rejects.toThrow(IdempotencyConflict);
  });

  it("says nothing when the store is away", async () => {
    const away = new Unavailable("away");
    await expect(ours.find(setUp(away).keys, nowMs)).rejects.toBe(away);
  });
});
