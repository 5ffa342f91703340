import { describe, expect, it } from "vitest";
import { clientKinds, clientOf } from "../support/clients.ts";
import { oneEngine } from "../support/engines.ts";
import { startTestServer } from "../support/in-process-server.ts";
import { share } from "./share.ts";

const duration = 60_000;

describe.each(oneEngine)("costs on $name", (engine) => {
  const server = share(async () => startTestServer({ settings: await engine.settings() }));

  it.each(clientKinds)("are taken whole or not at all from counter and limit, over %s", async (kind) => {
    const { baseUrl, rootKey } = server();
    const client = clientOf(kind, baseUrl, rootKey);
    for (const async of [true, false]) {
      const { key } = await client.createKey({ apiId: "a", remaining: 10, ratelimit: { async, limit: 20, duration } });
      const verify = (request: object) => client.verifyKey({ key, ...request });
      expect(await verify({ remaining: { cost: 4 }, ratelimit: { cost: 7 } })).toMatchObject({
        code: "VALID",
        remaining: 6,
        ratelimit: { limit: 20, remaining: 13 },
        ratelimits: [],
      });
      // A refusal takes nothing, of the other neither.
      expect(await verify({ remaining: { cost: 7 }, ratelimit: { cost: 1 } })).toMatchObject({
        code: "USAGE_EXCEEDED",
        remaining: 6,
        reason: { check: "counter", of: "key" },
      });
      expect(await verify({ ratelimit: { cost: 14 } })).toMatchObject({
        code: "RATE_LIMITED",
        remaining: 6,
        reason: { check: "limit", of: "key" },
      });
      expect(await verify({ ratelimit: { cost: 21 } })).toMatchObject({ code: "RATE_LIMITED", remaining: 6 });
      expect(await verify({ remaining: { cost: 6 }, ratelimit: { cost: 13 } })).toMatchObject({
        code: "VALID",
        remaining: 0,
        ratelimit: { remaining: 0 },
      });
      // 0 takes nothing and passes where nothing is left.
      expect(await verify({ remaining: { cost: 0 }, ratelimit: { cost: 0 } })).toMatchObject({
        code: "VALID",
        remaining: 0,
      });
      expect(await verify({ remaining: {}, ratelimit: { cost: 0 } })).toMatchObject({ code: "USAGE_EXCEEDED" });
      expect(await verify({ remaining: { cost: 0 } })).toMatchObject({ code: "RATE_LIMITED" });
    }
  });

  it.each(["sdk", "grpc"] as const)("of 0 open no window, over %s", async (kind) => {
    const { baseUrl, rootKey } = server();
    const client = clientOf(kind, baseUrl, rootKey);
    for (const async of [true, false]) {
      const { key } = await client.createKey({ apiId: "a", ratelimit: { async, limit: 2, duration } });
      const asked = await client.verifyKey({ key, ratelimit: { cost: 0 } });
      expect(asked).toMatchObject({ code: "VALID", ratelimit: { remaining: 2 } });
      await new Promise((resolve) => setTimeout(resolve, 20));
      const first = await client.verifyKey({ key });
      // A window that the first call had opened would end earlier.
      expect(first.ratelimit?.reset).toBeGreaterThan(asked.ratelimit?.reset ?? Number.POSITIVE_INFINITY);
    }
  });

  it.each(clientKinds)(
    "several limits pass together or not at all, and the one that refuses is named, over %s",
    async (kind) => {
      const { baseUrl, rootKey } = server();
      const client = clientOf(kind, baseUrl, rootKey);
      const { key } = await client.createKey({
        apiId: "a",
        remaining: 3,
        costMax: 9,
        ratelimit: { limit: 20, duration },
        ratelimits: [
          { name: "minute", async: true, limit: 4, duration },
          { name: "month", async: false, limit: 12, duration },
        ],
      });
      const verify = (request: object = {}) => client.verifyKey({ key, ...request });
      const left = ({ remaining, ratelimit, ratelimits }: Awaited<ReturnType<typeof verify>>) => [
        remaining,
        ratelimit?.remaining,
        ...(ratelimits ?? []).map((state) => state.remaining),
      ];
      const first = await verify({
        ratelimits: [
          { name: "month", cost: 5 },
          { name: "hour", cost: 8 },
        ],
      });
      expect(first).toMatchObject({
        code: "VALID",
        ratelimits: [
          { name: "minute", limit: 4 },
          { name: "month", limit: 12 },
        ],
      });
      expect(left(first)).toEqual([2, 19, 3, 7]);
      for (const [name, costs] of [
        ["minute", [{ name: "minute", cost: 4 }]],
        ["month", [{ name: "month", cost: 8 }]],
        [
          "minute",
          [
            { name: "month", cost: 8 },
            { name: "minute", cost: 4 },
          ],
        ],
      ] as const) {
        const refused = await verify({ ratelimits: costs });
        expect(refused).toMatchObject({ code: "RATE_LIMITED", reason: { check: "limit", of: "key", name } });
      }
      const used = await verify({ remaining: { cost: 3 } });
      expect(used).toMatchObject({ code: "USAGE_EXCEEDED", reason: { check: "counter", of: "key" } });
      await expect(verify({ ratelimits: [{ name: "month", cost: 10 }] })).rejects.toThrow("at most 9");
      // Nothing of all that was taken.
      const last = await verify({
        remaining: { cost: 2 },
        ratelimits: [
          { name: "minute", cost: 3 },
          { name: "month", cost: 7 },
        ],
      });
      expect(last.code).toBe("VALID");
      expect(left(last)).toEqual([0, 18, 0, 0]);
    },
  );
});
