import { describe, expect, it } from "vitest";
import { Secret } from "../../src/domain/secret.ts";
import { Unavailable } from "../../src/domain/unavailable.ts";
import type { InspectingLimiter } from "../../src/ratelimit/limiter.ts";
import { type ExplainKeyRequest, explainKey } from "../../src/usecases/explain-key.ts";
import { sampleKey } from "../contract/sample-keys.ts";
import { createKey } from "../support/manage.ts";
import { createMemoryStore } from "../support/memory-store.ts";
import { readHoldersOf } from "../support/read-holders-of.ts";
import { TestClock } from "../support/test-clock.ts";

const rateLimit = { mode: "strict", limit: 10, durationMs: 60_000 } as const;
const state = { limit: 10, remaining: 4, resetMs: 1 };

/** A key with a strict limit, and a limiter that answers this, one after the other. */
async function setUp(...answers: (typeof state | undefined)[]) {
  const clock = new TestClock();
  const { management } = createMemoryStore(clock);
  const key = sampleKey(clock, { rateLimit, remaining: 7 });
  await createKey(management, key);
  const asked: unknown[] = [];
  const never = () => {
    throw new Error("an explanation takes nothing and does not trust memory");
  };
  const limiter: InspectingLimiter = {
    take: never,
    peek: never,
    inspect(...args) {
      asked.push(args);
      return answers.shift();
    },
  };
  const explain = (request: Partial<ExplainKeyRequest> = {}) =>
    explainKey(
      new Secret("root key"),
      { by: { keyId: key.id }, apiId: undefined, ...request },
      { limiter, clock, readHolders: readHoldersOf(management, clock) },
    );
  return { key, asked, explain };
}

describe("explainKey", () => {
  it("inspects limits for the cost in question, and names the first that refuses", async () => {
    const { key, asked, explain } = await setUp(state);
    const costs = { counter: 8, unnamed: 5, named: [] };
    const { code, reason, checks } = await explain({ costs });
    expect(asked).toEqual([[key.id, rateLimit, 5]]);
    expect([code, reason]).toEqual(["RATE_LIMITED", { check: "limit", of: "key", name: undefined }]);
    const failed = checks.filter(({ refusal }) => refusal !== undefined).map(({ check }) => check);
    expect(failed).toEqual(["limit", "counter"]);
  });

  it("tells of limits and counters also where the key is refused before", async () => {
    const { explain } = await setUp(state);
    const { code, checks } = await explain({ apiId: "another" });
    expect([code, checks.map(({ check }) => check)]).toEqual([
      "FORBIDDEN",
      ["api", "enabled", "expiry", "ip", "permissions", "limit", "counter"],
    ]);
  });

  it("reads a key again that has lost its limit meanwhile, and gives up if that goes on", async () => {
    const once = await setUp(undefined, state);
    expect(await once.explain()).toMatchObject({ code: "VALID" });
    const twice = await setUp(undefined, undefined, state);
    await expect(twice.explain()).rejects.toBeInstanceOf(Unavailable);
  });

  it("finds nothing, and asks no limit, if there is no such key", async () => {
    const { asked, explain } = await setUp();
    const nothing = { code: "NOT_FOUND", checks: [], reason: undefined };
    expect(await explain({ by: { key: new Secret("no key") } })).toEqual(nothing);
    expect(await explain({ by: { keyId: "key_none" } })).toEqual(nothing);
    expect(asked).toEqual([]);
  });
});
