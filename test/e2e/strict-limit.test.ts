import { describe, expect, it } from "vitest";
import type { VerifyKeyResponse } from "../../src/sdk/index.ts";
import { clientKinds, clientOf } from "../support/clients.ts";
import { oneEngine } from "../support/engines.ts";
import { startTestServer } from "../support/in-process-server.ts";
import { rawClient } from "../support/raw-client.ts";
import { TestClock } from "../support/test-clock.ts";
import { share } from "./share.ts";

const windowMs = 60_000;

describe.each(oneEngine)("a key with a strict limit, on $name", (engine) => {
  // Each test has keys of its own. Time only goes on.
  const start = share(async () => {
    const clock = new TestClock();
    const server = await startTestServer({ clock, settings: await engine.settings() });
    return { ...server, clock, client: rawClient(server).keys };
  });

  /** The limiter uses the test's clock: it waits until the clock is moved. */
  async function whileTimePasses<T>(clock: TestClock, act: Promise<T>): Promise<T> {
    const passing = setInterval(() => clock.advance(1), 1);
    try {
      return await act;
    } finally {
      clearInterval(passing);
    }
  }

  it.each(clientKinds)("is held to it over %s, and each answer says where it stands", async (kind) => {
    const server = start();
    const client = clientOf(kind, server.baseUrl, server.rootKey);
    const ratelimit = { async: false, limit: 2, duration: windowMs };
    const { key } = await client.createKey({ apiId: "api", ratelimit });
    const reset = server.clock.nowMs() + windowMs;

    const verify = () => client.verifyKey({ key });
    expect(await verify()).toMatchObject({ valid: true, ratelimit: { limit: 2, remaining: 1, reset } });
    expect(await verify()).toMatchObject({ valid: true, ratelimit: { limit: 2, remaining: 0, reset } });
    for (let i = 0; i < 3; i++) {
      const refused = { valid: false, code: "RATE_LIMITED", ratelimit: { limit: 2, remaining: 0, reset } };
      expect(await verify()).toMatchObject(refused);
    }

    server.clock.advance(windowMs + 1);
    const nextReset = server.clock.nowMs() + windowMs;
    expect(await verify()).toMatchObject({ valid: true, ratelimit: { limit: 2, remaining: 1, reset: nextReset } });
  });

  it.each([
    { limit: 5, remaining: 2, calls: 12, codes: { VALID: 2, USAGE_EXCEEDED: 10 }, permitsLeft: 3, usesLeft: 0 },
    { limit: 2, remaining: 5, calls: 12, codes: { VALID: 2, RATE_LIMITED: 10 }, permitsLeft: 0, usesLeft: 3 },
    { limit: 3, remaining: 3, calls: 12, codes: { VALID: 3, RATE_LIMITED: 9 }, permitsLeft: 0, usesLeft: 0 },
    { limit: 5, remaining: 0, calls: 12, codes: { USAGE_EXCEEDED: 12 }, permitsLeft: 5, usesLeft: 0 },
  ])(
    "with a limit of $limit and $remaining uses passes by both, one after the other: $codes",
    async ({ limit, remaining, calls, codes, permitsLeft, usesLeft }) => {
      const { client } = start();
      const ratelimit = { async: false, limit, duration: windowMs };
      const { key } = await client.createKey({ apiId: "api", remaining, ratelimit });
      const answers: VerifyKeyResponse[] = [];
      while (answers.length < calls) answers.push(await client.verifyKey({ key }));

      expect(countedBy(answers)).toEqual(codes);
      const last = answers.at(-1);
      expect(last).toMatchObject({ remaining: usesLeft, ratelimit: { limit } });
      // `remaining` never rises, so a released permit does not raise it again.
      expect(last?.ratelimit?.remaining).toBeLessThanOrEqual(permitsLeft);
      expect(last?.ratelimit?.remaining).toBeGreaterThanOrEqual(permitsLeft - 1);
    },
  );

  it("with fewer uses than its limit lets exactly those pass of many at once, and keeps the rest of the window", async () => {
    const { client, clock } = start();
    const ratelimit = { async: false, limit: 5, duration: windowMs };
    const { key } = await client.createKey({ apiId: "api", remaining: 2, ratelimit });
    const calls = Array.from({ length: 40 }, () => client.verifyKey({ key }));
    const answers = await whileTimePasses(clock, Promise.all(calls));

    // A released permit may come too late for a caller that was already refused.
    expect(answers.filter(({ valid }) => valid)).toHaveLength(2);
    const refusals = new Set(answers.filter(({ valid }) => !valid).map(({ code }) => code));
    expect([...refusals].filter((code) => code !== "USAGE_EXCEEDED" && code !== "RATE_LIMITED")).toEqual([]);
    const after = await whileTimePasses(clock, client.verifyKey({ key }));
    expect(after).toMatchObject({ code: "USAGE_EXCEEDED", remaining: 0 });
  });

  it("takes nothing from a window for a key that is disabled, expired or asked for by another API", async () => {
    const { client, clock } = start();
    const ratelimit = { async: false, limit: 3, duration: windowMs };
    const disabled = await client.createKey({ apiId: "api", enabled: false, ratelimit });
    const untouched = { limit: 3, remaining: 3, reset: clock.nowMs() + windowMs };
    for (let i = 0; i < 5; i++) {
      expect(await client.verifyKey({ key: disabled.key })).toMatchObject({ code: "DISABLED", ratelimit: untouched });
    }
    const usable = await client.createKey({ apiId: "api", ratelimit });
    for (let i = 0; i < 5; i++) await client.verifyKey({ key: usable.key, apiId: "another" });
    expect(await client.verifyKey({ key: usable.key })).toMatchObject({ valid: true, ratelimit: { remaining: 2 } });
  });

  it("is not found once it is deleted, with permits in hand", async () => {
    const { client } = start();
    const ratelimit = { async: false, limit: 100, duration: windowMs };
    const { key, keyId } = await client.createKey({ apiId: "api", ratelimit });
    for (let i = 0; i < 5; i++) expect(await client.verifyKey({ key })).toMatchObject({ valid: true });
    await client.deleteKey({ keyId });
    expect(await client.verifyKey({ key })).toMatchObject({ valid: false, code: "NOT_FOUND" });
  });

  it("counts apart from every other key", async () => {
    const { client } = start();
    const ratelimit = { async: false, limit: 1, duration: windowMs };
    const keys = await Promise.all([1, 2, 3].map(() => client.createKey({ apiId: "api", ratelimit })));
    for (const { key } of keys) expect(await client.verifyKey({ key })).toMatchObject({ valid: true });
    for (const { key } of keys) expect(await client.verifyKey({ key })).toMatchObject({ code: "RATE_LIMITED" });
  });
});

function countedBy(answers: readonly VerifyKeyResponse[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { code } of answers) counts[code] = (counts[code] ?? 0) + 1;
  return counts;
}
