import { describe, expect, it } from "vitest";
import type { VerifyKeyResponse } from "../../src/sdk/index.ts";
import { type ClientKind, clientKinds, clientOf } from "../support/clients.ts";
import { isDeep, sized } from "../support/deep.ts";
import { oneEngine } from "../support/engines.ts";
import { startTestServer } from "../support/in-process-server.ts";
import { rawClient } from "../support/raw-client.ts";
import { readMetric } from "../support/read-metric.ts";
import { TestClock } from "../support/test-clock.ts";
import { share } from "./share.ts";

async function start(clock = new TestClock(), settings = {}) {
  const server = await startTestServer({ clock, settings });
  return { ...server, clock, client: rawClient(server).keys };
}

/** So many verifications at once by so many clients, a fifth more than the limit in all. */
async function crowd(
  server: { baseUrl: string; rootKey: string },
  key: string,
  limit: number,
  kinds: readonly ClientKind[],
) {
  const clients = Array.from({ length: 12 }, (_, i) =>
    clientOf(kinds[i % kinds.length] as ClientKind, server.baseUrl, server.rootKey),
  );
  const asksEach = Math.ceil((limit * 1.2 + 1) / clients.length);
  const ask = async (client: (typeof clients)[number]) => {
    const answers: VerifyKeyResponse[] = [];
    while (answers.length < asksEach) answers.push(await client.verifyKey({ key }));
    return answers;
  };
  return (await Promise.all(clients.map(ask))).flat();
}

describe("one replica", () => {
  const sizes: readonly { windows: number; limit: number; duration: number; kinds: readonly ClientKind[] }[] = [
    { windows: 3, limit: 1, duration: 1000, kinds: clientKinds },
    { windows: 3, limit: 5, duration: 10_000, kinds: clientKinds },
    { windows: 2, limit: 100, duration: 60_000, kinds: clientKinds },
  ];
  it.each(sized(sizes, [{ windows: 1, limit: 10_000, duration: 60_000, kinds: ["sdk"] }]))(
    "lets exactly $limit pass in each of $windows windows of $duration ms, counting down",
    async ({ windows, limit, duration, kinds }) => {
      const server = await start();
      const { key } = await server.client.createKey({ apiId: "api", ratelimit: { limit, duration } });

      for (let window = 0; window < windows; window++) {
        const reset = server.clock.nowMs() + duration;
        const answers = await crowd(server, key, limit, kinds);
        const passed = answers.filter(({ valid }) => valid);
        const refused = answers.filter(({ valid }) => !valid);

        expect(passed.map(({ ratelimit }) => ratelimit?.remaining).sort((a = 0, b = 0) => b - a)).toEqual(
          Array.from({ length: limit }, (_, i) => limit - 1 - i),
        );
        expect(refused.length).toBeGreaterThan(0);
        for (const { code, ratelimit } of refused) {
          expect({ code, ratelimit }).toEqual({
            code: "RATE_LIMITED",
            ratelimit: { limit, remaining: 0, reset, duration },
          });
        }
        for (const { ratelimit } of passed) expect(ratelimit).toMatchObject({ limit, reset });

        server.clock.advance(duration - 1);
        expect(await server.client.verifyKey({ key })).toMatchObject({ valid: false, code: "RATE_LIMITED" });
        server.clock.advance(1);
      }
    },
  );

  it("lets exactly the limit pass in every window of real time, under load without a pause", async () => {
    const [limit, duration, windows] = [50, 1000, sized(2, 6)];
    const server = await startTestServer();
    const client = rawClient(server).keys;
    const { key } = await client.createKey({ apiId: "api", ratelimit: { limit, duration } });
    const passedBy = new Map<number, number>();
    const full = new Set<number>();
    const ask = async () => {
      while (full.size < windows) {
        const { valid, ratelimit } = await client.verifyKey({ key });
        const reset = ratelimit?.reset ?? 0;
        passedBy.set(reset, (passedBy.get(reset) ?? 0) + Number(valid));
        if (!valid) full.add(reset);
      }
    };
    await Promise.all(Array.from({ length: 8 }, ask));

    const resets = [...passedBy.keys()].sort((a, b) => a - b);
    for (const reset of resets) {
      if (full.has(reset)) expect(passedBy.get(reset)).toBe(limit);
      else expect(passedBy.get(reset)).toBeLessThanOrEqual(limit);
    }
    for (let i = 1; i < resets.length; i++) {
      expect((resets[i] as number) - (resets[i - 1] as number)).toBeGreaterThanOrEqual(duration - 1);
    }
  });

  if (isDeep) return;

  it("neither reopens nor lengthens a window when its clock is set, and tells the end by the new time", async () => {
    const { client, clock } = await start(new TestClock("2026-01-15T12:00:00Z"));
    const { key } = await client.createKey({ apiId: "api", ratelimit: { limit: 1, duration: 60_000 } });
    expect(await client.verifyKey({ key })).toMatchObject({ valid: true });

    for (const time of ["2026-01-15T13:00:00Z", "2026-01-15T11:00:00Z"]) {
      clock.stepTo(time);
      expect(await client.verifyKey({ key })).toMatchObject({ valid: false, code: "RATE_LIMITED" });
    }
    clock.advance(60_000);
    expect(await client.verifyKey({ key })).toMatchObject({ valid: true });
  });
});

describe.each(oneEngine)("a key with a local limit, on $name", (engine) => {
  // Each test has keys of its own.
  const startOn = share(async () => start(new TestClock(), await engine.settings()));

  it.each(clientKinds)("is held to it over %s, and each answer says where it stands", async (kind) => {
    const server = startOn();
    const client = clientOf(kind, server.baseUrl, server.rootKey);
    const { key } = await client.createKey({ apiId: "api", ratelimit: { async: true, limit: 2, duration: 5000 } });
    const reset = server.clock.nowMs() + 5000;

    expect(await client.verifyKey({ key })).toMatchObject({
      valid: true,
      ratelimit: { limit: 2, remaining: 1, reset },
    });
    expect(await client.verifyKey({ key })).toMatchObject({
      valid: true,
      ratelimit: { limit: 2, remaining: 0, reset },
    });
    expect(await client.verifyKey({ key })).toMatchObject({
      valid: false,
      code: "RATE_LIMITED",
      ratelimit: { limit: 2, remaining: 0, reset },
    });
  });

  it("uses nothing up when it is limited", async () => {
    const { client, clock } = startOn();
    const { key } = await client.createKey({ apiId: "api", remaining: 3, ratelimit: { limit: 1, duration: 1000 } });

    expect(await client.verifyKey({ key })).toMatchObject({ valid: true, remaining: 2 });
    for (let i = 0; i < 5; i++) {
      expect(await client.verifyKey({ key })).toMatchObject({ code: "RATE_LIMITED", remaining: 2 });
    }
    clock.advance(1000);
    expect(await client.verifyKey({ key })).toMatchObject({ valid: true, remaining: 1 });
  });

  it("is not charged for a use that is refused", async () => {
    const { client } = startOn();
    const { key } = await client.createKey({ apiId: "api", remaining: 1, ratelimit: { limit: 3, duration: 60_000 } });

    expect(await client.verifyKey({ key })).toMatchObject({ valid: true, ratelimit: { remaining: 2 } });
    for (let i = 0; i < 5; i++) {
      const refused = { valid: false, code: "USAGE_EXCEEDED", remaining: 0, ratelimit: { limit: 3, remaining: 2 } };
      expect(await client.verifyKey({ key })).toMatchObject(refused);
    }
  });

  it("takes part in other refusals without being charged", async () => {
    const { client, clock } = startOn();
    const ratelimit = { limit: 3, duration: 60_000 };
    const { key } = await client.createKey({ apiId: "api", enabled: false, ratelimit });
    const reset = clock.nowMs() + 60_000;

    for (let i = 0; i < 5; i++) {
      const answer = await client.verifyKey({ key });
      expect(answer).toMatchObject({ code: "DISABLED", ratelimit: { limit: 3, remaining: 3, reset } });
    }
    expect(await client.verifyKey({ key, apiId: "another" })).not.toHaveProperty("ratelimit");
  });
});

if (!isDeep) {
  describe("windows in memory", () => {
    it("are never taken from an open one: a key that finds none gets 503, and the alarm counts it", async () => {
      const { client, clock, internalPort } = await start(new TestClock(), { windowsMax: 2 });
      const ratelimit = { limit: 1, duration: 60_000 };
      const keys = await Promise.all([1, 2, 3].map(() => client.createKey({ apiId: "api", ratelimit })));
      const [first, second, third] = keys.map(({ key }) => key) as [string, string, string];
      for (const key of [first, second]) expect(await client.verifyKey({ key })).toMatchObject({ valid: true });

      const fullBefore = await readMetric(internalPort, "latchkey_rate_limit_windows_full_total");
      await expect(client.verifyKey({ key: third })).rejects.toMatchObject({ status: 503 });
      expect(await readMetric(internalPort, "latchkey_rate_limit_windows_full_total")).toBe(fullBefore + 1);
      expect(await client.verifyKey({ key: first })).toMatchObject({ code: "RATE_LIMITED" });

      clock.advance(60_000);
      await expect.poll(() => client.verifyKey({ key: third })).toMatchObject({ valid: true });
    });
  });
}
