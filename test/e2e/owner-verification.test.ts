import { describe, expect, it, vi } from "vitest";
import type { LatchkeyClient } from "../../src/sdk/index.ts";
import { clientKinds, latchkeyOf } from "../support/clients.ts";
import { type Engine, engines, oneEngine } from "../support/engines.ts";
import { startTestServer } from "../support/in-process-server.ts";
import { startLatchkey } from "../support/latchkey-process.ts";
import { testRootKey } from "../support/test-root-key.ts";
import { share } from "./share.ts";

const duration = 3_600_000;

/** Two keys of one owner. */
async function createKeys({ keys }: LatchkeyClient, ownerId: string, given: object = {}) {
  const [first, second] = [
    await keys.createKey({ apiId: "api", ownerId, ...given }),
    await keys.createKey({ apiId: "api", ownerId }),
  ];
  return { first, second, keyIds: [first.keyId, second.keyId] };
}

describe.each(oneEngine)("what keys of one owner share on $name", (engine) => {
  const server = share(async () => startTestServer({ settings: await engine.settings() }));

  it.each(clientKinds)("is one balance, charged with the key's own: both or neither, over %s", async (kind) => {
    const { baseUrl, rootKey } = server();
    const ownerId = `acme over ${kind}`;
    const client = latchkeyOf(kind, baseUrl, rootKey);
    await client.owners.createOwner({ ownerId, remaining: 10 });
    const { first, second } = await createKeys(client, ownerId, { remaining: 6 });
    const verify = (key: string, cost: number) => client.keys.verifyKey({ key, remaining: { cost } });

    const shared = (remaining: number) => ({ owner: { remaining, ratelimits: [] } });
    expect(await verify(first.key, 4)).toMatchObject({ code: "VALID", remaining: 2, ...shared(6) });
    // The key cannot pay: the owner does not either.
    expect(await verify(first.key, 3)).toMatchObject({
      code: "USAGE_EXCEEDED",
      remaining: 2,
      ...shared(6),
      reason: { check: "counter", of: "key" },
    });
    const ofOther = await verify(second.key, 5);
    expect(ofOther).toMatchObject({ code: "VALID", ownerId, ...shared(1) });
    expect(ofOther.remaining).toBeUndefined();
    // The owner cannot pay: the key does not either.
    expect(await verify(first.key, 2)).toMatchObject({
      code: "USAGE_EXCEEDED",
      remaining: 2,
      ...shared(1),
      reason: { check: "counter", of: "owner", message: "the counter of the key's owner has not enough left" },
    });
    expect(await verify(first.key, 1)).toMatchObject({ code: "VALID", remaining: 1, ...shared(0) });
    expect(await verify(first.key, 0)).toMatchObject({ code: "VALID", remaining: 1, ...shared(0) });
    expect(await client.owners.getOwner({ ownerId })).toMatchObject({ remaining: 0 });
  });

  it.each([true, false])("is one window of each limit, with async: %s", async (async) => {
    const { baseUrl, rootKey } = server();
    const ownerId = `acme ${async}`;
    const client = latchkeyOf("sdk", baseUrl, rootKey);
    await client.owners.createOwner({ ownerId, ratelimits: [{ name: "day", limit: 5, duration, async }] });
    const own = [{ name: "day", limit: 3, duration, async }];
    const { first, second } = await createKeys(client, ownerId, { ratelimits: own });
    const verify = (key: string, cost: number) => client.keys.verifyKey({ key, ratelimits: [{ name: "day", cost }] });

    const states = (key: number, owner: number) => ({
      ratelimits: [{ name: "day", limit: 3, remaining: key }],
      owner: { ratelimits: [{ name: "day", limit: 5, remaining: owner }] },
    });
    expect(await verify(first.key, 2)).toMatchObject({ code: "VALID", ...states(1, 3) });
    const ofKey = { check: "limit", of: "key", name: "day" };
    const refused = await verify(first.key, 2);
    expect(refused).toMatchObject({ code: "RATE_LIMITED", reason: ofKey });
    // What a strict limit shows does not rise within a window, although the permits are back.
    if (async) expect(refused).toMatchObject(states(1, 3));
    expect(await verify(second.key, 3)).toMatchObject({ code: "VALID", owner: states(0, 0).owner });
    const ofOwner = { check: "limit", of: "owner", name: "day" };
    const ownerRefused = await verify(first.key, 1);
    expect(ownerRefused).toMatchObject({ code: "RATE_LIMITED", owner: states(0, 0).owner, reason: ofOwner });
    if (async) expect(ownerRefused).toMatchObject(states(1, 0));
    expect(await verify(second.key, 0)).toMatchObject({ code: "VALID", owner: states(0, 0).owner });
  });

  it("begins with the record, ends with it, and concerns keys of its APIs", async () => {
    const { baseUrl, rootKey } = server();
    const client = latchkeyOf("sdk", baseUrl, rootKey);
    const { keys, owners } = client;
    const { first } = await createKeys(client, "acme");
    const elsewhere = await keys.createKey({ apiId: "another", ownerId: "acme" });
    const verify = ({ key }: { key: string }) => keys.verifyKey({ key });

    // Both are remembered without an owner.
    for (const key of [first, elsewhere]) expect((await verify(key)).owner).toBeUndefined();
    await owners.createOwner({ ownerId: "acme", remaining: 2, apiIds: ["api"] });
    expect(await verify(first)).toMatchObject({ code: "VALID", owner: { remaining: 1 } });
    expect((await verify(elsewhere)).owner).toBeUndefined();

    await owners.updateOwner({ ownerId: "acme", enabled: false });
    expect(await verify(first)).toMatchObject({
      code: "DISABLED",
      owner: { remaining: 1 },
      reason: { check: "enabled", of: "owner", message: "the key's owner is disabled" },
    });
    expect(await verify(elsewhere)).toMatchObject({ code: "VALID" });
    await owners.updateOwner({ ownerId: "acme", enabled: true, apiIds: ["another"] });
    expect((await verify(first)).owner).toBeUndefined();
    expect(await verify(elsewhere)).toMatchObject({ owner: { remaining: 0 } });
    expect(await verify(elsewhere)).toMatchObject({ code: "USAGE_EXCEEDED" });

    await owners.updateRemaining({ ownerId: "acme", op: "increment", value: 5 });
    expect(await verify(elsewhere)).toMatchObject({ code: "VALID", owner: { remaining: 4 } });
    await owners.updateOwner({ ownerId: "acme", ratelimits: [{ name: "day", limit: 1, duration, async: false }] });
    expect(await verify(elsewhere)).toMatchObject({ code: "VALID", owner: { ratelimits: [{ remaining: 0 }] } });
    expect(await verify(elsewhere)).toMatchObject({ code: "RATE_LIMITED", owner: { remaining: 3 } });
    await owners.deleteOwner({ ownerId: "acme", keys: "keep" });
    const freed = await verify(elsewhere);
    expect([freed.code, freed.ownerId, freed.owner]).toEqual(["VALID", "acme", undefined]);

    // What is made anew is new: nothing of the window, nothing of the balance.
    const again = { ownerId: "acme", remaining: 9, ratelimits: [{ name: "day", limit: 1, duration, async: false }] };
    await owners.createOwner(again);
    expect(await verify(elsewhere)).toMatchObject({ code: "VALID", owner: { remaining: 8 } });
  });
});

describe("changes of an owner", () => {
  it("are in force in all workers", async () => {
    const settings = { LATCHKEY_WORKERS: "2", LATCHKEY_ROOT_KEY: testRootKey };
    const { baseUrl } = await startLatchkey({ ...(await engines[0]?.environment()), ...settings });
    const client = latchkeyOf("sdk", baseUrl, testRootKey);
    const { first } = await createKeys(client, "acme");
    // New connections each time: workers take them in turns.
    const verify = async () => {
      const answers = Array.from({ length: 8 }, () => latchkeyOf("grpc-js", baseUrl, testRootKey));
      const verified = await Promise.all(answers.map(({ keys }) => keys.verifyKey({ key: first.key })));
      return [...new Set(verified.map(({ code }) => code))];
    };
    expect(await verify()).toEqual(["VALID"]);
    await client.owners.createOwner({ ownerId: "acme", enabled: false });
    // When they are answered, unless a worker gets no processor time for 100 ms.
    await vi.waitFor(async () => expect(await verify()).toEqual(["DISABLED"]));
    await client.owners.updateOwner({ ownerId: "acme", enabled: true });
    await vi.waitFor(async () => expect(await verify()).toEqual(["VALID"]));
  });

  it.runIf(engines[1] !== undefined)("reach other replicas by the change feed", async () => {
    const settings = await (engines[1] as Engine).settings();
    const [here, there] = await Promise.all([startTestServer({ settings }), startTestServer({ settings })]);
    const client = latchkeyOf("sdk", here.baseUrl, here.rootKey);
    const other = latchkeyOf("sdk", there.baseUrl, here.rootKey);
    const { first } = await createKeys(client, "acme");
    const untilThere = (expected: object) =>
      vi.waitFor(async () => expect(await other.keys.verifyKey({ key: first.key })).toMatchObject(expected));
    await untilThere({ code: "VALID" });
    await client.owners.createOwner({ ownerId: "acme", remaining: 100_000 });
    await untilThere({ code: "VALID", owner: { ratelimits: [] } });
    await client.owners.updateOwner({ ownerId: "acme", enabled: false });
    await untilThere({ code: "DISABLED" });
    await client.owners.deleteOwner({ ownerId: "acme", keys: "keep" });
    await untilThere({ code: "VALID" });
  });
});
