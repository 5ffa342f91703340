import { describe, expect, it } from "vitest";
import { sha256 } from "../../src/ambient/crypto.ts";
import { clientKinds, clientOf } from "../support/clients.ts";
import { oneEngine } from "../support/engines.ts";
import { startTestServer } from "../support/in-process-server.ts";
import { rawClient } from "../support/raw-client.ts";

const ratelimits = [
  { name: "per-minute", limit: 5, duration: 60_000 },
  { name: "A_b.9", async: false, limit: 2_147_483_647, duration: 2_592_000_000 },
];
const stored = [{ async: true, ...ratelimits[0] }, ratelimits[1]];

describe.each(oneEngine)("limits with names and bounds on costs on $name", (engine) => {
  it("are kept as they were given, and set, kept and removed by updates, over every protocol", async () => {
    const { baseUrl, rootKey } = await startTestServer({ settings: await engine.settings() });
    for (const kind of clientKinds) {
      const client = clientOf(kind, baseUrl, rootKey);
      const apiId = `api-${kind}`;
      const { keyId } = await client.createKey({ apiId, ratelimits, costMax: 7 });
      const plain = await client.createKey({ apiId });
      const all = { ratelimits: stored, costMax: 7 };
      expect(await client.getKey({ keyId })).toMatchObject(all);
      const read = await client.getKey({ keyId: plain.keyId });
      expect([read.ratelimits, read.costMax]).toEqual([[], undefined]);
      expect((await client.listKeys({ apiId })).keys).toMatchObject([{ ratelimits: [] }, all]);
      expect(await client.updateKey({ keyId, name: "name" })).toMatchObject({ name: "name", ...all });
      const changed = [{ name: "A_b.9", async: false, limit: 1, duration: 1000 }];
      expect(await client.updateKey({ keyId, ratelimits: changed })).toMatchObject({ ratelimits: changed, costMax: 7 });
      expect(await client.updateKey({ keyId, costMax: 1 })).toMatchObject({ ratelimits: changed, costMax: 1 });
      const digest = sha256(`sk-${kind}`);
      const { results } = await client.importKeys({ apiId, keys: [{ digest, ratelimits, costMax: 3 }] });
      expect(await client.getKey({ keyId: results[0]?.keyId as string })).toMatchObject({ ...all, costMax: 3 });
    }
  });

  it("are removed by null, and events name them", async () => {
    const server = await startTestServer({ settings: await engine.settings() });
    const { keys, audit } = rawClient(server);
    const { keyId } = await keys.createKey({ apiId: "api", ratelimits, costMax: 7 });
    expect(await keys.updateKey({ keyId, ratelimits: null })).toMatchObject({ ratelimits: [], costMax: 7 });
    const { costMax } = await keys.updateKey({ keyId, costMax: null });
    expect(costMax).toBeUndefined();
    const { events } = await audit.listEvents({ targetId: keyId });
    expect(events.map(({ fields }) => fields)).toEqual([["costMax"], ["ratelimits"], []]);
    await expect(keys.updateKey({ keyId, ratelimits: [] })).rejects.toMatchObject({ status: 400 });
    const twice = [ratelimits[0], ratelimits[0]] as typeof ratelimits;
    await expect(keys.createKey({ apiId: "api", ratelimits: twice })).rejects.toMatchObject({
      status: 400,
      message: "ratelimits: has a name twice",
    });
  });
});
