import { describe, expect, it } from "vitest";
import { createSystemRandom } from "../../src/ambient/random.ts";
import { createCreateKey, ExpiresInThePast } from "../../src/usecases/create-key.ts";
import { createMemoryStore } from "../support/memory-store.ts";
import { TestClock } from "../support/test-clock.ts";

const clock = new TestClock("2026-11-15T12:00:00Z");
const nowMs = clock.nowMs();
const { keys } = createMemoryStore(clock);
const createKey = createCreateKey({ keys, clock, random: createSystemRandom() });

const request = {
  apiId: "api",
  prefix: undefined,
  byteLength: undefined,
  ownerId: undefined,
  name: undefined,
  meta: {},
  enabled: true,
  remaining: undefined,
  refill: undefined,
  rateLimit: undefined,
};

describe("a key that expires", () => {
  it("in the next millisecond is created", async () => {
    expect(await createKey({ ...request, expiresAtMs: nowMs + 1 })).toHaveProperty("key");
  });

  it.each([
    ["now", nowMs, "must be in the future"],
    ["a moment ago", nowMs - 1, "must be in the future"],
    ["at the beginning of time", 1, "must be in the future"],
    ["after a duration in place of a moment", 3_600_000, "must be in the future"],
    [
      "in an hour, told in seconds",
      nowMs / 1000 + 3600,
      "must be in the future, in milliseconds; this looks like seconds",
    ],
    ["a while ago, told in seconds", 1e9, "must be in the future, in milliseconds; this looks like seconds"],
    [
      "in three thousand years, told in seconds",
      1e11 - 1,
      "must be in the future, in milliseconds; this looks like seconds",
    ],
    ["in 1973", 1e11, "must be in the future"],
  ])("%s is not", async (_, expiresAtMs, message) => {
    const refused = createKey({ ...request, expiresAtMs });
    await expect(refused).rejects.toThrow(ExpiresInThePast);
    await expect(refused).rejects.toThrow(new RegExp(`^${message}$`));
  });
});
